"""The live side of `quire run` and `quire member`: processes that follow a plan, and the parts of their trace."""

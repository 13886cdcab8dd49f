"""What `quire run` and `quire member` do: processes with a plan, and the parts of their trace."""

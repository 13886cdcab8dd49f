"""The command line: reads arguments, calls the library, shows the result to a person or, with --json, to a machine."""

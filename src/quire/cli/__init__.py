"""The command line: parses arguments, calls the library, and prints the result for people or, with --json, for programs."""

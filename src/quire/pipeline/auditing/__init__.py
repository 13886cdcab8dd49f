"""The audit: which orders hold in a trace, and a minimal counterexample for each violation."""

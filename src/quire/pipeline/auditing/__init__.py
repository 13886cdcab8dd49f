"""The audit: checks which ordering guarantees hold in a trace, and gives a minimal counterexample for each violated one."""

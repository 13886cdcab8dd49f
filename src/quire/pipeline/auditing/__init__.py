"""The audit: which orders hold in a trace, and the smallest story of each violation."""

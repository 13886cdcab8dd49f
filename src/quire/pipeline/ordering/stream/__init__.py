"""Ordering events while they arrive.

`options` says what the caller wants; `intake` sorts what a micro-batch brings; `frontier` decides how far the order is
final; `release` and `causal` write what leaves; `ledger` commits it all at once; `operator` is one micro-batch from end to
end, and `query` the Structured Streaming query around it.
"""

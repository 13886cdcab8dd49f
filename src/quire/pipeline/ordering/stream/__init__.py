"""Streaming order: puts events in order while they arrive, and emits each as soon as its position is final.

`options` are the caller's choices; `intake` validates and sorts a micro-batch; `frontier` decides how far the order is final;
`release`, `significant` and `causal` decide what leaves and write it, with `writing`; `ledger` commits each micro-batch
atomically; `operator` performs one micro-batch from end to end; `query` is the Structured Streaming query around it.
"""

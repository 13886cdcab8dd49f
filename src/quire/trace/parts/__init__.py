"""Trace parts: the files to which each process of a run writes its events, while it runs and until it ends or crashes.

A part consists of two files with the same stem. `p00003-20260131T101502123456Z.json` describes it (`description`): which run,
which process, since when, by which clock. The `.events` file beside it is the log (`frames`), to which the process (`writer`)
appends while it runs: names, records that use them, and finally how it ended. It can be read (`reader`) at any time, up to the
last complete frame. `runs` groups the parts of a directory into runs, and `survey`, with `rewriting`, `unrecorded` and
`observing`, prepares them for the trace of the run.
"""

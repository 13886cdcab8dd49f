"""Parts: what each process of a run leaves behind, while it runs and after it has ended or crashed.

A part is two files of one name. `p00003-20260131T101502123456Z.json` describes it (`description`): which run, which process,
since when, by which clock. It is written when the process starts and never changed. The `.events` file beside it is the log
(`frames`), to which the process appends while it runs: names, records that use them, and at last how it ended. Whoever reads
it (`reader`) can do so at any time, and takes from it what is whole.
"""

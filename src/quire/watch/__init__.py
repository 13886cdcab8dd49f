"""The live view of running processes, as a web page or as tables in a terminal: status, events, latency and verdicts.

sources.py      the input: processes that can be observed, or the trace parts that they write; updates.py is a batch of it
member.py       one watched process: its last status and its history, in bounded memory
series.py       numbers over time, fine-grained for minutes and coarse for a day
recent.py       the last events of a trace, for the diagram, and the latency of messages
incidents.py   what happened, in sentences
scene.py        all watched processes together; snapshot.py is what the page receives of it, and diagram.py of their events
page.py         the page; server.py serves it, and text.py shows the same in a terminal
verdict.py      which orders hold so far; followed*.py feed the kernels of the audit
left_behind.py  members that the others continue without, and how long judging waits for them
"""

"""A page, or a table, about processes that are running: what they show of themselves, gathered and put into words.

sources.py    where it comes from: processes that can be looked at, or the parts that they write
member.py     one process as it was heard last, and how it went: bounded, whatever it does
series.py     numbers over time, fine for minutes and coarse for a day
recent.py     the last events of the trace, for the diagram, and how long messages took
happenings.py what happened, in sentences
scene.py      everything together; snapshot.py says what the page is told of it
page.py       the page; server.py serves it, and text.py draws the same in a terminal
verdict.py    which orders hold in what was delivered so far; followed*.py have the kernels of the audit judge it
"""

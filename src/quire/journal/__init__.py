"""The journal (write-ahead log): records of what a process must remember, durable before anything is sent that depends on them.

It treats records as number, type and bytes, whatever they mean. `records` is the format, `layout` the names of the files,
`disk` the file operations that a journal needs; `reading` reads, `journal` writes, and `writer` does that for an event loop.
`lock` keeps other processes from writing, `summary` describes a journal, and `errors` has its errors.
"""

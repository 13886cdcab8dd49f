"""The journal: what a process must not forget, in records that are durable before anybody is told.

It knows records by number, type and bytes, and not what they mean. `records` is the format, `layout` says how files are called,
`disk` what a journal needs of a directory; `reading` reads, `journal` writes, and `writer` does that for an event loop.
"""

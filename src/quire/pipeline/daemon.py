"""The process that Spark's Python workers on this machine are copies of, with what all of them need already imported.

Spark starts it when the first task comes, and has it make a copy of itself for each worker. What it has imported, its copies
need not import again: otherwise that is most of what a small task costs, once for each core. It imports nothing that starts
threads, which would not be in the copies.
"""

from __future__ import annotations

from importlib import import_module

WANTED = ("pyspark.worker", "quire.pipeline.tasks", "quire.pipeline.reading", "quire.pipeline.compiled")


def main() -> None:
    for module in WANTED:
        import_module(module)
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()

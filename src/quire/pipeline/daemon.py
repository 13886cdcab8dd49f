"""The daemon from which Spark forks its Python workers on this machine, with their common imports already loaded.

Spark starts it when the first task arrives, and has it fork once for each worker. The workers need not repeat its imports,
which would otherwise be most of the cost of a small task, once per core. It imports nothing that starts threads, because
threads do not survive a fork.
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

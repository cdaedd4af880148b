"""How an experiment is run: its cells are divided into tasks, which threads, processes or a cluster play.

Results do not depend on where a task is played; only the cells that the directory lacks are run.

- ``cells.py``: ``Cell``, one policy on one instance, and its digest.
- ``tasks.py``: ``Task``, some replications of a cell; the ``Executor`` protocol.
- ``executors.py``: ``Threads`` and ``Processes``.
- ``cluster.py``: ``Cluster``, a Dask scheduler.
- ``progress.py``: how far all tasks are together.
- ``runner.py``: ``run``.
"""

"""How an experiment is run: its cells are divided into tasks, which threads, processes or a cluster play.

Results do not depend on where a task is played; only the cells that the directory lacks are run.

- ``cells.py``: ``Cell``, one policy on one instance, and its digest; ``Task``, some replications of a cell.
- ``executors.py``: ``Threads`` and ``Processes``, and how far all tasks are together.
- ``cluster.py``: ``Cluster``, a Dask scheduler.
- ``runner.py``: ``run``.
"""

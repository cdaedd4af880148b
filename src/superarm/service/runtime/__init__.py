"""The running service: requests are planned, appended to the log, and applied after the commit.

The state is used on one event loop alone; one thread writes to the store. ``ask``, ``feedback``, ``bulk`` and ``admin``
plan events; ``coordinator`` has them written and applied, with ``batcher``, ``writer``, ``locks`` and ``deadlines``;
``saving`` has the state saved.
"""

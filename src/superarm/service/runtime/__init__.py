"""The running service: requests are planned, appended to the log, and applied after the commit.

All state is touched on one event loop; one thread writes to the store.
"""

"""The rules of the service: what a problem, a decision and feedback are, and how events change them.

Nothing here reads a clock, a file, a socket or a database, so all of it can be tested in one process.
"""

"""The event log on disk, in SQLite or PostgreSQL, with its snapshots.

The log is authoritative; everything else here is derived from it or checks it.
"""

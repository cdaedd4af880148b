"""The event log on disk, in SQLite or PostgreSQL, with its snapshots.

The log is authoritative; everything else here is derived from it or checks it.

base: what a store is · checking: whether one is · sqlite · postgres, postgres_tables ·
snapshot: the state on disk, whether it follows from the log, and how old decisions leave the log ·
tables: exports and imports
"""

"""The event log on disk, in SQLite or PostgreSQL, with its snapshots.

The log is authoritative; everything else here is derived from it or checks it.

base: what a store is · checking: whether one is · sqlite, sqlite_files · postgres, postgres_tables ·
snapshot: the state on disk, and whether it follows from the log · compaction: old decisions ·
tables: exports and imports
"""

"""Logs from other forms, and back.

- ``arrays.py``: a log from arrays, the checks of what they hold, and the layout of Open Bandit Pipeline.
- ``tables.py``: files and data frames as columns, and a log from columns with one row per arm and item.
"""

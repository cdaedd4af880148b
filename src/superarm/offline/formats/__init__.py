"""Logs from other forms, and back.

- ``columns.py``: a log from arrays, and the checks of what they hold.
- ``files.py``: files and data frames as columns; ``tables.py``: a log from columns with one row per arm and item.
- ``open_bandit.py``: the layout of Open Bandit Pipeline.
"""

"""What the results show: a directory of results read back, summarised and tested.

Nothing here draws or writes; every table of the report is computed here, once per study.

- ``study.py``: ``Study``, the results of an experiment.
- ``summary.py``: final regret and its tails, ranking, ratios, slopes along sweeps, pull shares and coverage.
- ``claims.py``: the claims of an experiment, each decided by one number.
- ``published.py``: published numbers beside measured ones.
- ``bounds.py``: the bounds of ``superarm.theory`` as curves, where they apply.
"""

"""What the results show: a directory of results read back, summarised, tested and compared.

Nothing here draws or writes; every table of the report is computed here, once per study.

- ``study.py``: ``Study``, the results of an experiment.
- ``summary.py``: final regret, ranking, slopes along sweeps, pull shares and coverage.
- ``statistics.py``: confidence intervals, paired and unpaired differences, slopes, Holm's method.
- ``claims.py``: the claims of an experiment, each decided by one number.
- ``bounds.py``: the bounds of ``superarm.theory`` as curves, where they apply.
- ``comparison.py``: two studies, cell by cell.
"""

"""Estimators of what a slate or a policy is worth, from the rounds of a log.

- ``targets.py``: what is evaluated, as a mixture of slates; the slates that a policy would show next.
- ``slates.py``: values and derivatives of many slates, and bounds of differences in which shared arms cancel.
- ``entries.py``: means of all entries, and their time-uniform intervals.
- ``importance.py``: estimators that weight slates by propensities.
- ``model_based.py``: the direct method and the entrywise one-step estimator.
- ``replay.py``: the replay of a policy on the rounds in which it agrees with the log.
- ``methods.py``: all of them by name, with what they assume and need.
"""

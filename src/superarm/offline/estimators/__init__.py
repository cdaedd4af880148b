"""Estimators of what a slate or a policy is worth, from the rounds of a log.

- ``slates.py``: rewards, values and derivatives of many slates by one compiled call.
- ``scores.py``: one score per round, whose mean is an estimate.
- ``mixture.py``: what is evaluated, as a mixture of slates.
- ``entries.py``: means of all entries, and their time-uniform intervals.
- ``paired.py``: bounds of the difference between two slates, in which shared arms cancel.
- ``importance.py``: estimators that weight slates by propensities, as functions of arrays.
- ``weighted.py``: the same for a log; ``model_based.py``: the direct method and the entrywise one-step estimator.
- ``replay.py``: the replay of a policy on the rounds in which it agrees with the log.
- ``methods.py``: all of them by name, with what they assume and need.
"""

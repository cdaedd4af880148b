"""The array engine: components work on whole arrays with a leading replication axis, and are composed in Python.

It replaces the compiled engine package by package, and is not public until it has replaced it. ``core`` holds problems,
tallies and random numbers, ``kernels`` the loops that numba compiles, ``reference`` their NumPy twins.
"""

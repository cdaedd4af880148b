"""Measurements: of speed (engine, service, wrk, soak, responsiveness), and of what policies do (the other files)."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded: every contestant has one thread

"""What superarm's speed is measured against, and how; ``make bench`` runs ``benchmarks.rounds``."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded: every contestant has one thread

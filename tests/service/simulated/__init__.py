"""The service in one process from one seed: event loop, clock, threads, database, workers, clients and faults.

``loop`` has the event loop with a clock of its own, and the threads. ``database`` is a PostgreSQL in memory, as far as
the service speaks to it; ``file`` is a log that one process serves. ``world`` has the workers, which are the real
application, and ``faults`` what befalls them. ``clients`` sends operations, and ``book`` says what must be true of the
answers and of the log. ``trial`` is one seed; ``python -m tests.service.simulated --seed N`` plays it again.
"""

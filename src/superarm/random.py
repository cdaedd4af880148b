"""Random numbers for components of your own: each depends on the key of its run, the round, and the arm alone.

So runs can be repeated, policies that are compared meet the same luck, and feedback may come in any order. A policy
finds the keys in ``view.keys``, an environment is given them: one word for each replication.

>>> import numpy as np
>>> keys = np.array([5, 6], np.uint64)
>>> one, both = uniform(keys, 3, np.array([7])), uniform(keys, 3, np.arange(10))
>>> one.shape, both.shape, bool((one[:, 0] == both[:, 7]).all())
((2, 1, 1), (2, 10, 1), True)
"""

from superarm.core.streams import SHARED, coins, normal, shared_uniform, states, uniform

__all__ = ["SHARED", "coins", "normal", "shared_uniform", "states", "uniform"]

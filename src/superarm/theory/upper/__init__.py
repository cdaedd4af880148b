"""Upper bounds of the regret on a given instance, [MerlisMannor2019]_ and after; proofs are in ``docs/theory``.

One function per theorem, ``upper_bound_…`` of an instance, most also of given numbers, a ``Setting``;
``superarm.theory.bounds`` calls them.

- ``paper.py``: the statements of the paper and of its comparison, corrected.
- ``bc_ucb.py``: BC-UCB with sharper constants, and the charges that the theorems of the next files share.
- ``kl_ucb.py``: KL-UCB at both levels, and with late feedback.
- ``local.py``: KL-UCB with the slopes of the reward at the true parameters.
- ``directional.py``: the directional policy, where its direction is known.
- ``cascade.py``: lists that are read from the top.
- ``contextual.py``: the policies on linear models.
- ``thompson.py``: Thompson sampling, in the limit.
"""

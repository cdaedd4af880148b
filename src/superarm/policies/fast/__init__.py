"""Devices for speed: policies that decide bit for bit what a plain policy decides, with less work.

``IndexPolicy.fit`` chooses between ``Sieve`` and ``SparseSieve``, ``DirectionalPolicy.fit`` takes ``DirectionalSieve``,
``LinearPolicy.fit`` takes ``LinearSieve`` or ``SharedSieve``, ``screened`` takes ``Screened``, and nothing else refers
to them.

=====================  ===============================================================================
``sieve``              ``Sieve``: dense problems with the greedy oracle
``sparse_sieve``       ``SparseSieve``: sparse problems with the greedy oracle
``directional_sieve``  ``DirectionalSieve``: directional policies on dense problems
``linear_sieve``       ``LinearSieve``: linear policies with one parameter vector per entry
``shared_sieve``       ``SharedSieve``: linear policies with one parameter vector for all entries
``entry_tiles``        bounds of the optimistic parameters of a linear model per entry
``gain_sums``          bounds of gains under a shared linear model
``reaches``            how the sieves of linear policies find the arm with the largest gain
``listed``             ``Screened``: listed batches
``sieving``            what the sieves of index policies share
``tournament``         arms ordered by key, kept up to date
``picking``            how a dense sieve finds the arm with the largest gain
``fixed_point``        bounds of weighted sums from whole numbers of 16 bits
``tiles``              bounds of all gains
``moment_tiles``       bounds of the means and deviations of all weighted sums
``sparse_picking``     how a sparse sieve finds it
``arm_blocks``         sparse arms in blocks with one bound each
``block_order``        blocks of arms by their bounds
``popular_items``      what blocks know of the items that most arms have
=====================  ===============================================================================
"""

"""Devices for speed: policies that decide bit for bit what an index policy decides, with less work.

``IndexPolicy.fit`` chooses between the two sieves, ``screened`` takes ``Screened``, and nothing else refers to them.

===================  =================================================================================
``sieve``            ``Sieve``: dense problems with the greedy oracle
``sparse_sieve``     ``SparseSieve``: sparse problems with the greedy oracle
``listed``           ``Screened``: listed batches
``sieving``          what both sieves share
``tournament``       arms ordered by key, kept up to date
``tiles``            bounds of all gains in single precision
``arm_blocks``       sparse arms in blocks with one bound each
``popular_items``    what blocks know of the items that most arms have
===================  =================================================================================
"""

"""What every part needs, and imports itself alone: components, supports, tallies, random numbers, operations.

component: values that compare, hash and print · support: where entries are · tally: statistics and feedback · moments,
directions: whole arms, and bounds of weighted sums of their items · streams: random numbers · numeric: logarithms with
the same bits everywhere · ops: which twin of an operation runs, that of ``reference`` (NumPy) or of ``kernels`` (numba)
"""

"""Influence on a graph, the independent cascade: a reward, an environment and an oracle of components alone.

It is also an example of an extension: no other package knows of it, and it uses what components of one's own can.
components: spread, the cascade and IMM · loops: what numba compiles
"""

from superarm.diffusion.components import IMM, IndependentCascade, Spread

__all__ = ["IMM", "IndependentCascade", "Spread"]

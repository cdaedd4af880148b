"""The theory of the paper, computed on a concrete instance: smoothness, gaps, upper and lower bounds, the proof.

``bounds(instance, policy, horizon)`` says what every theorem gives; where the paper's statement is wrong or loose, the
docstring of the theorem's function and ``docs/theory`` say how it differs.

- ``smoothness.py``, ``certificate.py``, ``intervals.py``: the smoothness parameters of a reward, and their proof.
- ``gaps.py``: the gaps of an instance, by enumeration or branch and bound.
- ``bound.py``: one bound; ``theorems.py``: all theorems, which policy and instance each is about, and their table.
- ``upper/``, ``lower.py``, ``graves_lai.py``: the theorems; ``sequences.py``: what Theorem 1 is made of.
- ``proof.py``: the steps of the proof, checked along a run; ``report.py``: the bounds beside simulated regret.
"""

from superarm.theory.bound import Bound, crossover
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import graves_lai
from superarm.theory.lower import kl_inf
from superarm.theory.proof import Trace, follow
from superarm.theory.report import bounds_report
from superarm.theory.smoothness import Refuted, SmoothnessCertificate, multilinear, sensitivity, smoothness
from superarm.theory.theorems import Bounds, bounds

__all__ = [
    "Bound",
    "Bounds",
    "Gaps",
    "Refuted",
    "SmoothnessCertificate",
    "Trace",
    "bounds",
    "bounds_report",
    "crossover",
    "follow",
    "gaps",
    "graves_lai",
    "kl_inf",
    "multilinear",
    "sensitivity",
    "smoothness",
]

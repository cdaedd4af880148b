"""The fused C++ loop of ``reference.cpp``, compiled once into a temporary directory if g++ is there."""

import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("reference.cpp")
INDICES = {"bernstein": 0, "hoeffding": 1, "kl": 2, "beta": 3, "ziggurat": 4}
REWARDS = {"coverage": 0, "logistic": 1, "linear": 2}


def available() -> bool:
    """Whether a compiler is there."""
    return shutil.which("g++") is not None


@functools.cache
def library() -> Any:
    """The compiled reference."""
    name = f"superarm-reference-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}.so"
    built = Path(tempfile.gettempdir()) / name
    if not built.exists():
        flags = ["-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-std=c++17", "-shared", "-fPIC"]
        subprocess.run(["g++", *flags, str(SOURCE), "-o", str(built)], check=True)
    found = ctypes.CDLL(str(built))
    pointer = ctypes.c_void_p
    found.run.restype = ctypes.c_double
    found.run.argtypes = [ctypes.c_int] * 5 + [pointer] * 4 + [ctypes.c_int64] * 2 + [ctypes.c_double, ctypes.c_uint64]
    found.pick.argtypes = [ctypes.c_int] * 3 + [pointer] * 4
    return found


def run(
    index: str, reward: str, k: int, p: Any, weights: Any, pulls: Any, total: Any, t: int, rounds: int, rho: float
) -> float:
    """Play ``rounds`` rounds from round ``t`` on, changing ``pulls`` and ``total`` in place; the expected reward."""
    n_arms, n_items = p.shape
    arrays = [a.ctypes.data for a in (p, weights, pulls, total)]
    codes = INDICES[index], REWARDS[reward]
    return float(library().run(*codes, n_arms, n_items, k, *arrays, t, rounds, rho, 7))


def pick(k: int, weights: Any, q: Any, pulls: Any) -> Any:
    """The greedy batch for the parameters ``q`` (n_arms, n_items)."""
    chosen = np.empty(k, np.int32)
    n_arms, n_items = q.shape
    library().pick(n_arms, n_items, k, weights.ctypes.data, q.ctypes.data, pulls.ctypes.data, chosen.ctypes.data)
    return chosen

"""The mean of replications with its standard error."""

import math

import numpy as np

from superarm.core.arrays import Floats


def mean_and_standard_error(values: Floats) -> tuple[float, float]:
    """The mean of independent values, and its standard error; the error of a single value is NaN.

    >>> mean_and_standard_error(np.array([1.0, 2.0, 3.0]))
    (2.0, 0.5773502691896258)
    """
    n = len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return float(np.mean(values)), error


def mean_and_band(values: Floats) -> tuple[Floats, Floats]:
    """The mean over replications (the first axis), and half the width of its 95 % band (normal); 0 for a single one.

    >>> mean_and_band(np.array([[1.0, 2.0]]))
    (array([1., 2.]), array([0., 0.]))
    """
    n = len(values)
    mean = np.asarray(values.mean(axis=0))
    return mean, 1.96 * values.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.zeros_like(mean)

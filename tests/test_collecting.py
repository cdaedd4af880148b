"""The tests of the first tier are collected in six seconds of processor time, on the usual machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import slowness

pytestmark = pytest.mark.slow("the time of collecting")


def test_the_first_tier_is_collected_in_six_seconds():
    """The second time: the first has compiled them."""
    taken = []
    for _ in range(2):
        before = os.times()
        command = [sys.executable, "-m", "pytest", "-q", "-n0", "-m", "not slow", "--collect-only"]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[1], env=environment)
        taken.append(sum(os.times()[2:4]) - sum(before[2:4]))
    assert min(taken) < 6.0 * slowness()

"""The random tests of action sets, oracles and policies once more in plain Python, where every kind is cheap."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from action_sets import COMPILED

HERE = Path(__file__).parent
WHERE = ["actions", "oracles", "policies/test_set_bonus.py"]


@pytest.mark.skipif(not COMPILED, reason="the suite itself runs in plain Python")
def test_action_sets_oracles_and_policies_in_plain_python():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(HERE / part for part in WHERE)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]

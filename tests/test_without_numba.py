"""numba is optional: without it agents and simulations work, and decide alike. An agent needs NumPy alone."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as sa
from superarm.core import ops

BLOCK = """
import importlib.machinery, sys
find = importlib.machinery.PathFinder.find_spec

def find_others(name, *arguments):
    return None if name.partition(".")[0] in BLOCKED else find(name, *arguments)

importlib.machinery.PathFinder.find_spec = staticmethod(find_others)
"""
WORK = """
import json
from tests.test_without_numba import work

print(json.dumps(work()))
assert not {"numba", "llvmlite"} & set(sys.modules)
"""
NUMBA = ("numba", "llvmlite")
POLICIES = [sa.bc_ucb(), sa.kl_ucb(), sa.cts(), sa.directional_kl_moss(), sa.policies.escb_delta()]


def work():
    """What some policies earn in a simulation, with kernels where there are any, and an agent's decisions."""
    instance = sa.instances.random_coverage(12, 6, 3, seed=1)
    policies = {repr(policy): policy for policy in POLICIES}
    results = sa.simulate(instance, policies, horizon=120, replications=3, seed=2, progress=False)
    agent, chosen = sa.Agent(instance.problem, sa.kl_ucb(), seed=3), []
    for _ in range(20):
        decision = agent.ask()
        chosen.append(decision.action.tolist())
        agent.tell(decision, np.ones((3, 6)) * 0.25)
    spread = sa.diffusion.Spread(20)
    graph = np.triu(np.full((6, 6), 0.4), 1)
    problem = sa.Problem(6, 6, spread, sa.Subsets(2), support=csr_array(graph))
    seeds = sa.oracles.solve(problem, csr_array(graph), sa.diffusion.IMM(0.4))
    return {
        "regret": {name: results.regret[name].tolist() for name in policies},
        "agent": chosen,
        "seeds": seeds.tolist(),
    }


def _run(blocked, code):
    """What a program prints in a process that cannot import these packages."""
    program = f"BLOCKED = {blocked!r}\n{BLOCK}\n{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_is_the_same_without_numba():
    pytest.importorskip("numba")
    printed = _run(NUMBA, WORK)
    with ops.engine("numba"):
        assert json.loads(printed) == work()


def test_the_agent_of_the_readme_needs_numpy_alone():
    (program, *_) = re.findall(r"```python\n(.*?)```", (Path(__file__).parent.parent / "README.md").read_text(), re.S)
    assert _run((*NUMBA, "scipy", "pandas", "pyarrow", "matplotlib", "distributed", "jinja2"), program).startswith("(")
    with pytest.raises(AssertionError, match="No module named 'numpy'"):
        _run(("numpy",), program)

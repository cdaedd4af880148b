"""A search for instances on which a policy keeps playing a wrong arm: ``python -m dev.benchmarks.adversary kl_moss``.

The instances have one arm per batch, up to 8 arms and 24 items, and differ in the means, in the weights, and in how the
items of each arm depend on one another. A run is *locked* if its regret per round in the second half exceeds 0.9 of the
gap to the second best arm. The search plays the known instances and random ones, then changes the worst of them, and
leaves out instances that bounds per entry need more rounds for (``learnable``). It prints those with the largest share
of locked runs. Calls with the same arguments draw the same instances; ``--seconds`` only ends the search early.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np

import superarm as sa
from superarm.environments import Blocks
from superarm.policies import Policy
from superarm.simulation import Instance

KINDS = ("independent", "comonotone", "blocks", "opposed", "shock", "rare")
WEIGHTS = ("equal", "heavy", "zipf", "retired")
MAX_DRAWS = 200
"""How many instances are drawn, at most, until one is learnable."""
LOCKED = 0.9
"""A run is locked above this share of the gap to the second best arm, in the second half of its rounds."""


class Arm(NamedTuple):
    """How one arm is: the dependence of its items, with its number, and its mean as a share of the best arm's."""

    kind: str
    number: float
    share: float


class Plan(NamedTuple):
    """An instance as the search changes it: the best arm is the first."""

    arms: tuple[Arm, ...]
    n_items: int
    mean: float
    weights: str
    horizon: int


def known() -> dict[str, Plan]:
    """Instances that are hard for policies which learn how items depend on one another."""
    return {
        "A1": _one_against(Arm("comonotone", 0.0, 1.0), Arm("independent", 0.0, 0.8), 9, 12, 0.5, 20_000),
        "A1b": _one_against(Arm("comonotone", 0.0, 1.0), Arm("independent", 0.0, 0.8), 5, 8, 0.3, 10_000),
        "A2": _one_against(Arm("rare", 0.12, 1.0), Arm("rare", 0.0, 0.81), 3, 1, 0.37, 10_000),
        "A3": _one_against(Arm("comonotone", 0.0, 1.0), Arm("independent", 0.0, 0.8), 5, 24, 0.4, 6_000, "heavy"),
        "A4": _one_against(Arm("shock", 0.01, 1.0), Arm("independent", 0.0, 0.9), 5, 6, 0.1, 20_000),
        "E1": _one_against(Arm("comonotone", 0.0, 1.0), Arm("independent", 0.0, 0.8), 5, 24, 0.4, 6_000, "retired"),
    }


def plain() -> dict[str, Plan]:
    """An instance without dependence, for ``--known``: one item, and four arms that are nearly as good as the best."""
    best, other = Arm("independent", 0.0, 1.0), Arm("independent", 0.0, 0.8)
    return {"plain": _one_against(best, other, 4, 1, 0.1, 20_000)}


def _one_against(best: Arm, other: Arm, others: int, n_items: int, mean: float, horizon: int, w: str = "equal") -> Plan:
    return Plan((best, *[other] * others), n_items, mean, w, horizon)


def to_instance(plan: Plan) -> Instance:
    """The instance of a plan."""
    shape = (len(plan.arms), plan.n_items)
    chance, base, block, shock = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape[0])
    for j, arm in enumerate(plan.arms):
        mean, items = plan.mean * arm.share, np.arange(plan.n_items)
        chance[j] = mean
        if arm.kind == "rare":  # 1 with a small probability, otherwise a constant
            rare = min(mean, arm.number)
            base[j], chance[j], block[j] = (mean - rare) / (1.0 - rare), rare, 1
        elif arm.kind == "comonotone":
            block[j] = 1
        elif arm.kind == "blocks":
            block[j] = 1 + items // max(2, int(arm.number * plan.n_items))
        elif arm.kind == "opposed":
            block[j] = np.where(items % 2, -1, 1)
        elif arm.kind == "shock":
            shock[j] = arm.number
    weights = {
        "equal": np.ones(plan.n_items),
        "heavy": np.where(np.arange(plan.n_items) < max(1, plan.n_items // 6), 1.0, 0.05),
        "zipf": 1.0 / np.arange(1.0, plan.n_items + 1.0),
        "retired": np.where(np.arange(plan.n_items) < max(1, plan.n_items // 4), 1.0, 0.0),
    }[plan.weights]
    if plan.weights in ("heavy", "retired"):  # the light items are independent, whatever the arm
        block[:, weights < 1.0] = 0
    problem = sa.Problem(shape[0], shape[1], sa.Coverage(), sa.Subsets(1), weights=weights)
    return Instance(problem, Blocks(chance, block, shock, base))


def learnable(plan: Plan) -> bool:
    r"""Whether the rounds suffice for an index per entry: L log T (2 s^2 / gap^2 + b / gap) <= T.

    s is the sum of the weighted standard deviations of binary items, b that of the weights. Otherwise a run that still
    explores could not be told from a locked one.
    """
    instance = to_instance(plan)
    p, w = instance.p.reshape(-1, plan.n_items), instance.problem.weights
    values = np.sort(p @ w)
    gap, spread = values[-1] - values[-2], float((np.sqrt(p * (1.0 - p)) @ w).max())
    if gap <= 0.0:
        return False
    need = len(p) * np.log(plan.horizon) * (2.0 * spread**2 / gap**2 + w.sum() / gap)
    return bool(need <= plan.horizon)


def random_plan(rng: np.random.Generator, horizon: int) -> Plan:
    """A plan drawn at random."""
    mean = float(rng.choice([0.02, 0.1, 0.3, 0.5, 0.8]))
    others = [_random_arm(rng, float(rng.uniform(0.6, 0.95))) for _ in range(rng.integers(1, 8))]
    n_items = int(rng.choice([1, 2, 4, 8, 16, 24]))
    return Plan((_random_arm(rng, 1.0), *others), n_items, mean, str(rng.choice(WEIGHTS)), horizon)


def _random_arm(rng: np.random.Generator, share: float) -> Arm:
    return Arm(str(rng.choice(KINDS)), float(rng.choice([0.003, 0.01, 0.05, 0.2, 0.5])), share)


def changed(plan: Plan, rng: np.random.Generator) -> Plan:
    """The plan with one thing changed."""
    arms = list(plan.arms)
    j = int(rng.integers(len(arms)))
    what = rng.integers(6)
    if what == 0:
        arms[j] = _random_arm(rng, arms[j].share)
    elif what == 1 and j > 0:
        arms[j] = arms[j]._replace(share=float(np.clip(arms[j].share * rng.uniform(0.9, 1.1), 0.4, 0.97)))
    elif what == 2:
        return plan._replace(mean=float(np.clip(plan.mean * rng.choice([0.5, 0.8, 1.25, 2.0]), 0.005, 0.95)))
    elif what == 3:
        return plan._replace(n_items=int(np.clip(plan.n_items * rng.choice([0.5, 2.0]), 1, 24)))
    elif what == 4:
        return plan._replace(weights=str(rng.choice(WEIGHTS)))
    elif len(arms) < 8:
        arms.append(arms[j] if j > 0 else _random_arm(rng, 0.8))
    return plan._replace(arms=tuple(arms))


class Finding(NamedTuple):
    """What a policy did on an instance: the share of locked runs; mean and largest regret over (gap * rounds)."""

    locked: float
    mean: float
    largest: float


def assess(policy: Policy, plan: Plan, runs: int, seed: int) -> Finding:
    """Play a policy on the instance of a plan."""
    instance, horizon = to_instance(plan), plan.horizon
    values = np.sort(instance.p.reshape(-1, plan.n_items) @ instance.problem.weights)
    gap = values[-1] - values[-2]
    if gap <= 1e-9:
        return Finding(0.0, 0.0, 0.0)
    results = sa.simulate(
        instance, {"": policy}, horizon, runs, seed, "optimal", rounds=[horizon // 2, horizon], progress=False
    )
    regret = results.regret[""]
    late = (regret[:, 1] - regret[:, 0]) / (gap * (horizon - horizon // 2))
    return Finding(
        float((late > LOCKED).mean()), *(float(f(regret[:, 1])) / (gap * horizon) for f in (np.mean, np.max))
    )


def search(
    policy: Policy, first: dict[str, Plan], budget: int, runs: int, horizon: int, seed: int, seconds: float
) -> list[tuple[str, Plan, Finding]]:
    """The instances tried, the worst first: ``first``, a third of the budget at random, the rest by evolution."""
    rng, started = np.random.default_rng(seed), time.monotonic()
    tried = [(name, plan, assess(policy, plan, runs, seed)) for name, plan in first.items()]
    for n in range(budget):
        if time.monotonic() - started > seconds:
            print(f"stopped after {n} of {budget} instances: --seconds {seconds:g}")
            break
        tried.sort(key=lambda entry: entry[2], reverse=True)
        parent = tried[int(rng.integers(min(8, len(tried))))]
        plan = parent[1]
        for _ in range(MAX_DRAWS):
            plan = random_plan(rng, horizon) if n < budget // 3 else changed(parent[1], rng)._replace(horizon=horizon)
            if learnable(plan):
                break
        else:
            continue
        tried.append(
            (
                f"random {n}" if n < budget // 3 else f"{parent[0].split('+')[0]}+{n}",
                plan,
                assess(policy, plan, runs, seed),
            )
        )
    return sorted(tried, key=lambda entry: entry[2], reverse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", help="a name of the catalogue, for instance kl_moss")
    parser.add_argument("--with", nargs="*", default=[], metavar="NAME=NUMBER", dest="settings", help="its parameters")
    parser.add_argument("--budget", type=int, default=60, help="how many instances to try beside the known ones")
    parser.add_argument("--runs", type=int, default=20, help="runs per instance in the search")
    parser.add_argument(
        "--final", type=int, default=200, help="runs, with another seed, of known instances, or of the worst five"
    )
    parser.add_argument("--horizon", type=int, default=4_000, help="rounds per run on instances that are found")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0, help="end the search after so many seconds")
    parser.add_argument("--known", nargs="*", metavar="NAME", help="play known instances only: all, or those named")
    arguments = parser.parse_args()
    settings = {name: float(value) for name, _, value in (setting.partition("=") for setting in arguments.settings)}
    policy = getattr(sa, arguments.policy)(**settings)
    print(f"{arguments.policy}: locked runs; regret of all runs / (gap * rounds), mean and largest")
    if arguments.known is not None:
        plans = known() | plain()
        for name in arguments.known or plans:
            again = assess(policy, plans[name], arguments.final, arguments.seed + 1)
            print(line(name, plans[name], again, arguments.final), flush=True)
        return
    found = search(
        policy, known(), arguments.budget, arguments.runs, arguments.horizon, arguments.seed, arguments.seconds
    )
    print(f"the worst five of {len(found)}, played again with another seed (share locked in the search in brackets):")
    for name, plan, finding in found[:5]:
        again = assess(policy, plan, arguments.final, arguments.seed + 1)
        print(f"{line(name, plan, again, arguments.final)} ({finding.locked:.2f}) {plan}", flush=True)


def line(name: str, plan: Plan, finding: Finding, runs: int) -> str:
    """One instance as a line of text."""
    locked = round(finding.locked * runs)
    return f"{name:>12} T={plan.horizon}: {locked}/{runs} locked, {finding.mean:.3f}, {finding.largest:.3f}"


if __name__ == "__main__":
    main()

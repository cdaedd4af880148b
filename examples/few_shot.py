"""Few-shot examples: ten of two hundred labelled digits, so that a classifier that sees only these is right most often.

    python examples/few_shot.py

A call scores one set: the share of twenty random digits of scikit-learn that a 1-NN classifier with these ten examples
gets right. What each example adds is never seen. Prints after how many calls each way to choose is within 5 % of the
best set that any of them found, and draws few_shot.png. Put your own model in the place of ``score``.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from sklearn.datasets import load_digits

import superarm as sa
from superarm.simulation.plots import COLOURS, new_figure

EXAMPLES, K, TESTED, CALLS, RUNS, EVERY = 200, 10, 20, 1_500, 5, 50
Chosen = Any
"""The numbers of the examples of a set."""


class Digits:
    """Two hundred digits to choose from, and the others to be right about."""

    def __init__(self, seed: int) -> None:
        self.rng, data = np.random.default_rng(seed), load_digits()
        order = self.rng.permutation(len(data.data))
        mine, rest = order[:EXAMPLES], order[EXAMPLES:]
        self.label, self.truth = data.target[mine], data.target[rest]
        self.distance = ((data.data[rest][:, None] - data.data[mine][None]) ** 2).sum(2)

    def score(self, chosen: Chosen, tests: Any = None) -> float:
        """The share of a few random digits that are classified right; of ``tests``, if given."""
        tests = self.rng.integers(len(self.truth), size=TESTED) if tests is None else tests
        nearest = np.asarray(chosen)[self.distance[tests][:, chosen].argmin(1)]
        return float((self.label[nearest] == self.truth[tests]).mean())

    def worth(self, chosen: Chosen) -> float:
        """The same of all digits: what the scores are a noisy sample of."""
        return self.score(chosen, np.arange(len(self.truth)))


def superarm(digits: Digits, seed: int) -> Callable[[], Chosen]:
    """An agent that is told each score as the total of its set; a call makes a decision and returns the best guess."""
    problem = sa.Problem(n_arms=EXAMPLES, reward=sa.Total(), actions=sa.Subsets(K))
    agent = sa.Agent(problem, seed=seed)

    def step() -> Chosen:
        decision = agent.ask()
        agent.tell(decision, total=digits.score(decision.action))
        return top(np.nan_to_num(agent.estimates().mean[:, 0])) if agent.t % EVERY == 0 else decision.action

    return step


def linear_thompson(digits: Digits, seed: int) -> Callable[[], Chosen]:
    """Thompson sampling of a linear model with a fixed prior: effects from N(0, 1), noise with a deviation of 1/2."""
    rng, precision, score = np.random.default_rng(seed), np.eye(EXAMPLES), np.zeros(EXAMPLES)

    def step() -> Chosen:
        root = cholesky(precision, lower=True)
        mean = cho_solve((root, True), score)
        chosen = top(mean + 0.5 * solve_triangular(root, rng.standard_normal(EXAMPLES), trans=1, lower=True))
        precision[np.ix_(chosen, chosen)] += 1.0
        score[chosen] += digits.score(chosen)
        return top(mean)

    return step


def random_search(digits: Digits, seed: int) -> Callable[[], Chosen]:
    """Another random set in each call; the guess is the one with the best score so far."""
    rng, best = np.random.default_rng(seed), (-1.0, np.arange(K))

    def step() -> Chosen:
        nonlocal best
        chosen = rng.permutation(EXAMPLES)[:K]
        best = max(best, (digits.score(chosen), chosen), key=lambda one: one[0])
        return best[1]

    return step


def top(effects: Any) -> Chosen:
    """The ten examples with the largest effects."""
    return np.argsort(-effects, kind="stable")[:K]


WAYS = {"superarm": superarm, "linear Thompson": linear_thompson, "random search": random_search}


def run(calls: int = CALLS, runs: int = RUNS) -> dict[str, Any]:
    """What the guess of each way is worth after every fifty calls, (runs, calls / 50)."""
    found: dict[str, Any] = {}
    for name, way in WAYS.items():
        rows = []
        for seed in range(runs):
            digits = Digits(seed)
            step = way(digits, seed)
            guesses = [step() for _ in range(calls)]
            rows.append([digits.worth(one) for one in guesses[EVERY - 1 :: EVERY]])
        found[name] = np.array(rows)
    return found


def calls_until(found: dict[str, Any], share: float = 0.95) -> dict[str, int | None]:
    """After how many calls the mean guess of each way is worth that share of the best that any way found."""
    best = np.mean(np.max([worth.max(1) for worth in found.values()], axis=0))
    near = {name: np.flatnonzero(worth.mean(0) >= share * best) for name, worth in found.items()}
    return {name: EVERY * (int(at[0]) + 1) if len(at) else None for name, at in near.items()}


def draw(found: dict[str, Any], path: str) -> None:
    """The mean of the runs of each way."""
    figure = new_figure(figsize=(7.0, 4.0))
    axes = figure.add_subplot()
    for (name, worth), colour in zip(found.items(), COLOURS, strict=False):
        calls = EVERY * np.arange(1, worth.shape[1] + 1)
        axes.plot(calls, worth.mean(0), color=colour, label=name)
        axes.fill_between(calls, worth.min(0), worth.max(0), color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("scored sets")
    axes.set_ylabel("share of all digits that the best guess gets right")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--calls", type=int, default=CALLS)
    words.add_argument("--runs", type=int, default=RUNS)
    words.add_argument("--out", default="few_shot.png")
    given = words.parse_args()
    found = run(given.calls, given.runs)
    for name, calls in calls_until(found).items():
        last = found[name][:, -1].mean()
        reached = f"after {calls} calls" if calls else "never"
        print(f"{name}: {last:.2f} right in the end; within 5 % of the best found {reached}")
    draw(found, given.out)
    print(f"figure: {given.out}")


if __name__ == "__main__":
    main()

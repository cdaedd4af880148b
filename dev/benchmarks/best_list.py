"""What it costs to start from a list that is already the best: ``python -m dev.benchmarks.best_list``.

One hundred products, pages of six. Those of the list are clicked at one rate, all others at a third of it, so there is
nothing to win. Clicks are told at once, up to 600 visits late, or never; what is not told is a zero, or pending. A line
has the share of the list's earnings that was lost so far, in percent, mean and largest of the runs, and in how many
runs it was above 5 % at any time. ``--log 30000`` lets the policy learn a log of so many views of the list first.
"""

import argparse
from typing import Any

import numpy as np

from dev.earnings.contest import ServedShop
from dev.earnings.shops import Draft, Kind, Shop, make_problem
from superarm.core import streams
from superarm.core.arrays import Floats, Ints
from superarm.core.tally import Feedback, Tally, View
from superarm.policies import pooled_thompson

RATES = (0.001, 0.002, 0.006, 0.02, 0.08)
TOLD = {"at once": (0, 0.0), "late": (600, 0.05), "never": (600, 1.0)}
"""How many visits late a click is told at most, and the chance that it never is."""


class PendingShop(ServedShop):
    """A shop in which what was shown is pending until its outcome is told, for all draws at once."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.pending = np.zeros((len(self.shop), self.problem.n_arms))

    def _hear(self, t: int) -> None:
        for feedback, _ in self.told.pop(t, ()):
            self.memory.learn(feedback)
            self._pend(feedback.action, -1.0)

    def _view(self, t: int, segment: int) -> View:
        view = super()._view(t, segment)
        view.counts = view.counts + self.pending
        return view

    def _answer(self, t: int, segment: int, slates: Ints, context: Any) -> None:
        outcome, seen = self.outcome(t, segment, slates)
        lost = streams.shared_uniform(self.keys.environment, t)[:, :1] < self.kind.lost
        told = Feedback(t, np.where(lost, -1, slates), outcome, seen, context)
        self._pend(slates, 1.0)
        if not lost.all():
            self.told.setdefault(t + int(self.delays[t - 1]), []).append((told, told))

    def _pend(self, slates: Ints, sign: float) -> None:
        rows, places = np.nonzero(slates >= 0)
        self.pending[rows, slates[rows, places]] += sign


def make_shop(p: Floats, k: int, runs: int, told: str = "at once") -> Shop:
    """Draws of a shop in which all visitors are alike, and the ranking is the order of the arms' numbers."""
    delay, lost = TOLD[told]
    kind = Kind(lambda rng: Draft(p), len(p), k, "one", delay=delay, lost=lost)
    everything, ones = np.ones((runs, 1, len(p)), bool), np.ones((runs, len(p)))
    return Shop("", kind, make_problem(kind), np.tile(p, (runs, 1, 1, 1)), everything, ones, np.arange(len(p)))


def losses(rate: float, visits: int, runs: int, told: str = "at once", pending: bool = False, **more: Any) -> Floats:
    """The share of the list's earnings that each run has lost after each visit, (runs, visits).

    ``more`` are the ``seed``, what the others earn as a share of the list (``rest``), the ``caution``, and so many
    views of the list as a ``log``.
    """
    seed, log = more.get("seed", 0), more.get("log", 0)
    p = np.append(np.full(6, rate), np.full(94, rate * more.get("rest", 1.0 / 3.0)))
    policy = pooled_thompson(baseline=range(100), caution=more.get("caution", "normal"))
    kind = PendingShop if pending and told != "at once" else ServedShop
    service = kind(make_shop(p, 6, runs, told), policy, visits, seed)
    if log:
        past = Tally(service.problem.support, runs)
        past.pulls[:, :6] = log
        past.total[:, 0, :6] = np.random.default_rng(seed).binomial(log, rate, (runs, 6))
        past.square[...] = past.total
        past.refresh()
        service.memory.warm(past, 1)
    earned = service.run()
    lost: Floats = 1.0 - np.cumsum(earned.policy, 1) / np.cumsum(earned.present, 1)
    return lost


def main() -> None:
    """Print a line for each rate and way of telling."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--visits", type=int, default=3000)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--log", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--caution", default="normal")
    args = parser.parse_args()
    for rate in args.rates:
        for told in TOLD:
            for pending in (False,) if told == "at once" else (False, True):
                more = {"seed": args.seed, "log": args.log, "caution": args.caution}
                lost = 100.0 * losses(rate, args.visits, args.runs, told, pending, **more)
                marks = [t for t in (1000, 3000, 10_000) if t < args.visits] + [args.visits]
                cells = [f"after {t}: {lost[:, t - 1].mean():.1f}, at most {lost[:, t - 1].max():.1f}" for t in marks]
                above = f"above 5 % in {100.0 * (lost.max(1) > 5.0).mean():.0f} % of runs"
                said = "pending" if pending else "zeros"
                print(f"{rate:.1%}, {told:7}, {said:7}: " + "; ".join([*cells, above]), flush=True)


if __name__ == "__main__":
    main()

"""What two policies earn without a list: ``python -m dev.benchmarks.from_nothing``.

Shops without segments, whose rates are log-normal. 20,000 visitors; clicks are told up to 300 visits late, and 3 % of
them never. Prints the share of the best slates' earnings in the first 1,000 visits and in all, the worst draw, and in
how many draws ``kl_moss`` earned more than ``pooled_thompson`` in the first 1,000 and in all. Three minutes.
"""

import argparse

import numpy as np

import superarm as sa
from dev.earnings.contest import ServedShop
from dev.earnings.shops import KINDS, Draft, Kind, draw_shop
from superarm.core.arrays import Floats

SHOPS = {  # products, places of a page, median rate, deviation of its logarithm
    "plain": (200, 6, 0.03, 0.6),
    "few products": (30, 5, 0.05, 0.6),
    "many products": (1000, 8, 0.03, 0.8),
    "rare clicks": (300, 6, 0.002, 0.8),
    "alike": (50, 4, 0.03, 0.2),
    "one place": (10, 1, 0.05, 0.5),
    "likes": (40, 4, 0.35, 0.4),
}


def kind(n_arms: int, k: int, middle: float, spread: float) -> Kind:
    """A kind of shop whose visitors are alike."""
    return Kind(
        lambda rng: Draft(rng.lognormal(np.log(middle), spread, (1, 1, n_arms))), n_arms, k, "one", delay=300, lost=0.03
    )


def shares(name: str, policy: sa.Policy, draws: int, visits: int) -> Floats:
    """The share of the best slates' earnings in the first 1,000 visits and in all, (draws, 2)."""
    KINDS[name] = kind(*SHOPS[name])
    earned = ServedShop(draw_shop(name, draws), policy, visits).run()
    return np.stack([earned.policy[:, :n].sum(1) / earned.best[:, :n].sum(1) for n in (1000, visits)], 1)


def main() -> None:
    """Print a line for each shop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--visits", type=int, default=20_000)
    args = parser.parse_args()
    found = []
    for name in SHOPS:
        both = np.stack([shares(name, one, args.draws, args.visits) for one in (sa.kl_moss(), sa.pooled_thompson())])
        found.append(both)
        more = (both[0] > both[1]).sum(0)
        cells = (f"{one[:, 0].mean():.2f} {one[:, 1].mean():.3f} {one[:, 1].min():.2f}" for one in both)
        print(f"{name:14} " + " | ".join(cells) + f" | {more[0]}, {more[1]} of {args.draws}", flush=True)
    every = np.stack(found)
    more = (every[:, 0] > every[:, 1]).sum((0, 1))
    means = " | ".join(f"{first:.3f} {whole:.3f}" for first, whole in every.mean((0, 2)))
    print(f"{'all':14} {means} | {more[0]}, {more[1]} of {args.draws * len(SHOPS)}")


if __name__ == "__main__":
    main()

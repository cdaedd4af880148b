"""What a learner earns that knows the rates of a shop, not whose they are: ``python -m dev.benchmarks.known_rates``.

It is Thompson sampling whose prior of each product is the shop's own table of rates, without the products' names
(``dev.earnings.rivals.KnownRates``). It is told what the shop tells, late. The program prints the share of the best
slates' earnings, the median and the worst of the draws, by the power to which the likelihood is raised (2: as
``pooled_thompson``). Another rule than Thompson sampling may earn more.

For shops in which visitors are alike it also prints what no learner can exceed in the mean, if rates of products are
independent draws from those of the kind of shop. Let a pull cost L. A product is then shown as long as that is worth
while, whatever is done with the others, and with V(L) the value of the best way to stop, T visits and K places,

    earnings <= T K L + n_products V(L)   for every L,

because the constraint "K places at every visit" was given up for its price (a Lagrangian relaxation). V(L) is found
by going backwards through all numbers of pulls and clicks; after ``KNOWN`` pulls the rate is taken as known, which can
only add to the bound. The smallest of these bounds over L is divided by the earnings of the best slates.
"""

import argparse

import numpy as np

from dev.earnings.contest import ServedShop
from dev.earnings.rivals import KnownRates, knows
from dev.earnings.shops import HELD_OUT, draw_shop

KNOWN, CLICKS, GRID = 1_500, 300, 400
"""After so many pulls the bound takes a rate as known; the most clicks and the most different rates that it counts."""


def bound(name: str, visits: int) -> float:
    """The share of the best slates' earnings that no learner exceeds in the mean in a shop whose visitors are alike."""
    shop = draw_shop(name, 100, first=1_000)
    means, kind = shop.means[:, 0, 0], shop.kind
    best = np.sort(means, 1)[:, -kind.k :].sum(1).mean()
    rates = np.sort(means.ravel()).reshape(GRID, -1).mean(1)
    clicks = np.arange(CLICKS + 1)[:, None]
    estimates = np.empty((KNOWN, CLICKS + 1))
    for n in range(KNOWN + 1):
        likely = clicks * np.log(rates) + (n - clicks) * np.log1p(-rates)
        chance = np.exp(likely - likely.max(1, keepdims=True))
        chance /= chance.sum(1, keepdims=True)
        if n < KNOWN:
            estimates[n] = chance @ rates

    def value(price: float) -> float:
        worth = (visits - KNOWN) * (chance @ np.maximum(rates - price, 0.0))
        for mean in estimates[::-1]:
            after = mean * np.append(worth[1:], worth[-1]) + (1.0 - mean) * worth
            worth = np.maximum(mean - price + after, 0.0)
        return visits * kind.k * price + kind.n_arms * worth[0]

    return min(value(price) for price in np.linspace(rates[0], rates[-1], 200)) / (visits * best)


def main() -> None:
    """Print one line per shop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--visits", type=int, default=20_000)
    parser.add_argument("--shop", action="append", help="instead of all held-out shops with one slate and clicks")
    options = parser.parse_args()
    for name in options.shop or [name for name, kind in HELD_OUT.items() if knows(kind)]:
        shop = draw_shop(name, options.draws)
        if shop.kind.form == "one" and not shop.kind.drifts:
            print(f"{name}: no learner earns more than {bound(name, options.visits):.3f} of the best", flush=True)
        for power in (1.0, 2.0, 3.0):
            earned = ServedShop(shop, KnownRates(shop, power), options.visits).run()
            shares = earned.policy.sum(1) / earned.best.sum(1)
            print(f"{name}, power {power:g}: {np.median(shares):.3f} of the best, worst {min(shares):.3f}", flush=True)


if __name__ == "__main__":
    main()

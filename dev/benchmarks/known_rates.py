"""What a learner earns that knows the rates of a shop, not whose they are: ``python -m dev.benchmarks.known_rates``.

It is Thompson sampling whose prior of each product is the shop's own table of rates, without the products' names. Every
click is told at once and none is lost. So this learner knows more than any policy of ``python -m dev.earnings``, and is
told more. The program prints the share of the best slates' earnings, the median and the worst of the draws, by the
power to which the likelihood is raised (2: as ``pooled_thompson``). Another rule than Thompson sampling may earn more.

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

from dev.earnings.shops import KINDS, Shop, draw_shop, greedy_slate
from superarm.core.arrays import Floats


class Posterior:
    """For each product of one shop, the chance that it is the one with each vector of rates: (n_arms, n_arms)."""

    def __init__(self, rates: Floats, power: float) -> None:
        self.rates, n_arms = rates, rates.shape[1]
        self.click, self.none = power * np.log(rates), power * np.log1p(-rates)
        self.likely = np.zeros((n_arms, n_arms))
        self.steps = np.tile(np.arange(1, n_arms + 1) / n_arms, (n_arms, 1))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Rates of every product, (n_segments, n_arms)."""
        found = (self.steps < rng.random((len(self.steps), 1))).sum(1)
        return self.rates[:, np.minimum(found, len(found) - 1)]

    def learn(self, segment: int, slate: Floats, clicked: Floats) -> None:
        """Count what a visitor of a segment did with a slate."""
        self.likely[slate] += np.where(clicked[:, None], self.click[segment], self.none[segment])
        weights = np.exp(self.likely[slate] - self.likely[slate].max(1, keepdims=True))
        self.steps[slate] = np.cumsum(weights, 1) / weights.sum(1, keepdims=True)


def serve(shop: Shop, draw: int, power: float, visits: int) -> float:
    """The share of the best slates' earnings that the learner earns in one draw of a shop."""
    kind, rng, shares = shop.kind, np.random.default_rng(draw), np.array(shop.kind.shares)
    phases = shop.means.shape[1]
    known, earned, best = Posterior(shop.chances[draw, 0], power), 0.0, 0.0
    for t in range(visits):
        phase = t * phases // visits
        p, there = shop.means[draw, phase], shop.for_sale[draw, phase]
        segment = rng.choice(len(shares), p=shares)
        q = np.where(there, known.draw(rng), 0.0)
        covers = kind.form == "items"
        slate = greedy_slate(q, shares, kind.k) if covers else np.argsort(-q[segment], kind="stable")[: kind.k]
        if t * phases % visits < phases:
            top = shop.best_slates(phase)[draw]
        for which, slates in enumerate((slate, top[segment])):
            value = shares @ (1.0 - np.prod(1.0 - p[:, slates], 1)) if covers else p[segment, slates].sum()
            earned, best = (earned + value, best) if which == 0 else (earned, best + value)
        known.learn(segment, slate, rng.random(len(slate)) < p[segment, slate])
    return earned / best


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
    parser.add_argument("--shop", action="append", help="instead of all held-out shops with clicks")
    options = parser.parse_args()
    held_out = [name for name, kind in KINDS.items() if kind.held_out and not kind.spread]
    for name in options.shop or held_out:
        shop = draw_shop(name, options.draws)
        if shop.kind.form == "one" and not shop.kind.drifts:
            print(f"{name}: no learner earns more than {bound(name, options.visits):.3f} of the best", flush=True)
        for power in (1.0, 2.0, 3.0):
            shares = [serve(shop, draw, power, options.visits) for draw in range(options.draws)]
            print(f"{name}, power {power:g}: {np.median(shares):.3f} of the best, worst {min(shares):.3f}", flush=True)


if __name__ == "__main__":
    main()

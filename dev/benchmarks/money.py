"""Which amount should count as 1, where outcomes are money? ``python -m dev.benchmarks.money``.

Shops with 200 products, pages of six and purchases with heavy tails; the policy starts from the list. By the limit of
``Scale``, prints the share of the revenue above it, the policy's revenue over the list's in 20,000 visits, counted in
full (mean and worst of the draws) and as it is told (mean), and half of the width of the lift's interval afterwards,
over the list's revenue, for a control share of 10 %.
"""

import argparse

import numpy as np

import superarm as sa
from dev.earnings.contest import ServedShop
from dev.earnings.shops import KINDS, Draft, Kind, Rng, Shop, draw_shop
from superarm.core.arrays import Floats, Ints
from superarm.offline.mean_sequences import BoundedSums, Stratum, normal_radius
from superarm.service.domain.lift import EXPECTED

SPREAD, N_ARMS, K, VISITS = 0.8, 200, 6, 20_000


def rates_and_prices(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """Chances of purchases and mean amounts of products: dear ones are bought less often."""
    price = rng.lognormal(3.3, 0.9, n)
    return rng.lognormal(np.log(0.012), 0.5, n) * (price / 27.0) ** -0.3, price


def purchases(n: int = 300_000) -> Floats:
    """Amounts of past purchases."""
    rng = np.random.default_rng(5)
    chance, price = rates_and_prices(rng, 20_000)
    bought = price[rng.choice(len(price), n, p=chance / chance.sum())]
    return bought * np.exp(-(SPREAD**2) / 2.0 + SPREAD * rng.normal(size=n))


def draw(limit: float, draws: int) -> tuple[Shop, Floats]:
    """Draws of the shop, whose means are the revenue in full, over ``limit``; and those of what is told."""

    def make(rng: Rng) -> Draft:
        chance, price = rates_and_prices(rng, N_ARMS)
        return Draft(chance[None, None], amounts=price / limit)

    KINDS["money"] = Kind(make, N_ARMS, K, "one", delay=300, lost=0.03, spread=SPREAD)
    shop = draw_shop("money", draws)
    told = shop.means
    object.__setattr__(shop, "means", shop.chances * shop.amounts[:, None, None, :])
    return shop, told


class Served(ServedShop):
    """A shop that also adds up what is told of its slates and of the list, ``told`` (R, 2)."""

    def __init__(self, shop: Shop, means: Floats) -> None:
        super().__init__(shop, sa.pooled_thompson(baseline=shop.known_ranking), VISITS)
        self.told_means, self.sums = means[:, 0, 0], np.zeros((len(shop), 2))

    def serve(self, t: int, segment: int) -> Ints:
        slates = super().serve(t, segment)
        for n, shown in enumerate((slates, np.array(self.shop.known_ranking[:K])[None])):
            self.sums[:, n] += np.take_along_axis(self.told_means, np.broadcast_to(shown, slates.shape), 1).sum(1)
        return slates


def half_width(amounts: Floats, limit: float) -> float:
    """Half of the width of the interval of the lift over the mean revenue, if all products are alike."""
    rng, groups = np.random.default_rng(1), [BoundedSums(), BoundedSums()]
    for view in range(VISITS):
        bought = amounts[rng.integers(0, len(amounts), rng.binomial(K, 0.012))]
        groups[view % 10 == 0].add(float(np.minimum(bought, limit).sum()))
    radius = normal_radius([Stratum(one, K * limit) for one in groups], 0.02, EXPECTED)
    return radius / (sum(one.total for one in groups) / VISITS)


def main() -> None:
    """Print a line for each limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    args = parser.parse_args()
    past = purchases()
    limits = {f"{q:.4g} %": float(np.quantile(past, q / 100.0)) for q in (99.0, 99.9, 99.99)} | {
        "none": 2.0 * past.max()
    }
    for name, limit in limits.items():
        shop, means = draw(limit, args.draws)
        served = Served(shop, means)
        earned = served.run()
        full, told = earned.policy.sum(1) / earned.present.sum(1), served.sums[:, 0] / served.sums[:, 1]
        above = 1.0 - np.minimum(past, limit).sum() / past.sum()
        print(
            f"{name:8} above {above:.1%}; in full {full.mean():.2f}, {full.min():.2f}; told {told.mean():.2f}; "
            f"told too much by at most {(told - full).max():.3f}; interval ± {half_width(past, limit):.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()

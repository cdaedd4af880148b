"""Shops in which an assumption of the default policy does not hold, and what helps there.

Nothing was tuned on them. Rates, lists, delays and losses are those of ordinary shops; each shop breaks one thing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dev.earnings.contest import PLAIN, Way
from dev.earnings.shops import Draft, Kind, Rng, Shop, by_category, common_places, lognormal
from dev.earnings.visitors import Choosers, Readers
from superarm.actions import PartitionMatroid
from superarm.core.arrays import Floats
from superarm.offline.positions import Positions
from superarm.policies import Policy, discounted, pooled_thompson

VISITS, DRAWS = 10_000, 10
LATE: dict[str, Any] = {"delay": 300, "lost": 0.03}


@dataclass(frozen=True)
class Remedy:
    """What the owner does: other settings of the shop, another policy, another way to run it, or learnt items."""

    words: str
    kind: Kind | None = None
    policy: Callable[[Shop], Policy[Any] | None] = lambda shop: pooled_thompson(baseline=shop.known_ranking)
    way: Way = PLAIN
    items: bool = False


@dataclass(frozen=True)
class Case:
    """A shop, what its owner would have to know, and what helps, if anything does."""

    kind: Kind
    fails: str
    remedy: Remedy | None = None
    visits: int = VISITS


def appeal(rng: Rng, n_arms: int, middle: float, spread: float = 0.6) -> Floats:
    """Chances of products of eight categories."""
    return lognormal(rng, n_arms, middle, spread) * by_category(rng, n_arms, 1, 8, 0.4)[0]


def ordinary(n_arms: int, middle: float, spread: float = 0.6) -> Callable[[Rng], Draft]:
    """A generator of shops whose visitors are alike."""
    return lambda rng: Draft(appeal(rng, n_arms, middle, spread)[None])


def moving(rng: Rng) -> Draft:
    """Forty days; tastes move, three products come each day, and the shop renews its list from what sells elsewhere."""
    market = np.random.default_rng(17)  # the same in all draws, and with it the lists
    n_arms, day = 260, np.arange(40)[:, None]
    comes, goes = (
        np.maximum(0, np.arange(n_arms) - 139) // 3,
        np.where(np.arange(n_arms) < 80, np.arange(n_arms) // 2, 99),
    )
    common = np.empty((40, n_arms))
    common[0] = market.normal(size=n_arms)
    for n in range(1, 40):
        common[n] = 0.97 * common[n - 1] + np.sqrt(1.0 - 0.97**2) * market.normal(size=n_arms)
    order = np.argsort(-common[0] * (comes == 0) + 99.0 * (comes > 0))  # products in the order of the first list
    common, comes, goes = common[:, order], comes[order], goes[order] + (goes[order] < 99)
    chances = 0.025 * np.exp(0.6 * common + 0.35 * rng.normal(size=n_arms))
    return Draft(chances[:, None], (comes <= day) & (day < goes), lists=np.argsort(-common, axis=1))


NEEDS = np.random.default_rng(5).permutation(np.repeat(np.arange(10), 12))
NEEDS[:6] = [0, 1, 0, 2, 3, 1]
"""What the products of the shop with substitutes are for, in the order of its list."""


DEMAND = tuple((0.22 * 0.8 ** np.arange(10)).tolist())
"""Which share of the visitors looks for each kind of product."""


def needs(rng: Rng) -> Draft:
    """Top sellers are for the needs that most visitors have; a list has some of each."""
    share = 0.8 * np.exp(-0.3 * np.log1p(np.arange(120)) + 0.4 * rng.normal(size=120))
    return Draft((np.minimum(0.9, share) * np.array(DEMAND)[NEEDS])[None])


def by_arm(name: str, by_rank: Any) -> tuple[int, ...]:
    """Numbers of products in the order of the list, in the order of the arms."""
    return tuple(np.asarray(by_rank)[common_places(name, len(by_rank))[1]].tolist())


def money(rng: Rng) -> Draft:
    """Purchases of dear and cheap products; 1 is the amount that one purchase of a hundred exceeds."""
    price = rng.lognormal(3.3, 0.9, 200)
    return Draft((rng.lognormal(np.log(0.012), 0.5, 200) * (price / 27.0) ** -0.3)[None], amounts=price / 330.0)


def tastes(rng: Rng) -> Draft:
    """Five tastes, each of which has products of its own; who has which is not known."""
    own = rng.integers(0, 5, 150) == np.arange(5)[:, None]
    return Draft(np.where(own, rng.beta(2.0, 6.0, 150), rng.beta(1.0, 60.0, (5, 150))))


def drifting(rng: Rng) -> Draft:
    """Sixty weeks in which tastes move slowly."""
    level, phases = rng.normal(size=150), []
    for _ in range(60):
        level = 0.95 * level + np.sqrt(1.0 - 0.95**2) * rng.normal(size=150)
        phases.append(0.025 * np.exp(0.6 * level))
    return Draft(np.array(phases)[:, None])


def shelves(rng: Rng) -> Draft:
    """Forty days: three products come and two go each day, and one in twelve is sold out for the day."""
    arm, day, calendar = np.arange(280), np.arange(40)[:, None], np.random.default_rng(7)
    comes, goes = np.maximum(0, arm - 159) // 3, np.where(arm < 80, arm // 2 + 1, 99)
    there = (comes <= day) & (day < goes) & (calendar.random((40, 280)) > 1.0 / 12.0)
    return Draft(appeal(rng, 280, 0.025)[None], there)


LOOKS = (1.0, 0.75, 0.6, 0.5, 0.4, 0.33)


def corrected(outcome: Floats) -> Floats:
    """Outcomes (R, k, n_items) as if all places were looked at alike."""
    return np.swapaxes(Positions(np.array(LOOKS)).correct(np.swapaxes(outcome, 0, 1)), 0, 1)


def without_robots(outcome: Floats) -> Floats:
    """Outcomes (R, k, n_items) without those of visits that clicked everything."""
    return np.where((outcome > 0.0).all((1, 2), keepdims=True), 0.0, outcome)


PLAIN_SHOP = Kind(ordinary(200, 0.025), 200, 6, "one", held_out=True, **LATE)
KIND_OF_ARM = by_arm("substitutes", NEEDS)
SUBSTITUTES = Kind(needs, 120, 6, "one", held_out=True, goal=None, visitors=Choosers(KIND_OF_ARM, DEMAND), **LATE)
MONEY = Kind(money, 200, 6, "one", held_out=True, spread=0.8, in_full=True, **LATE)
FILTER = Remedy("leave out visits that clicked everything", way=Way(without_robots))

CASES = {
    "ordinary": Case(PLAIN_SHOP, "nothing"),
    "list of the day": Case(
        Kind(moving, 260, 6, "one", held_out=True, goal=None, drifts=True, **LATE),
        "the list is renewed each day",
        Remedy("send the list of each day", way=Way(follows=True)),
        20_000,
    ),
    "substitutes": Case(
        SUBSTITUTES,
        "who needs a tent buys one tent",
        Remedy(
            "one product of a kind",
            replace(SUBSTITUTES, rule=PartitionMatroid(KIND_OF_ARM, dict.fromkeys(range(10), 1), 6)),
        ),
    ),
    "money": Case(
        MONEY, "a tenth of the revenue is above the limit", Remedy("a higher limit", replace(MONEY, limit=6.0))
    ),
    "hidden tastes": Case(
        Kind(tastes, 150, 5, "hidden", (0.3, 0.25, 0.2, 0.15, 0.1), held_out=True, **LATE),
        "tastes that nobody knows",
        Remedy("learn items, from nothing", policy=lambda shop: None, items=True),
    ),
    "places": Case(
        replace(PLAIN_SHOP, visitors=Readers(LOOKS)),
        "the first place is looked at three times as often as the last",
        Remedy("correct outcomes by place", way=Way(corrected)),
    ),
    "bots": Case(replace(PLAIN_SHOP, bots=0.1), "10 % of visits click everything", FILTER),
    "dirty log": Case(
        replace(PLAIN_SHOP, bots=0.15, delay=2_000, lost=0.3), "clicks late, 30 % lost, 15 % bots", FILTER
    ),
    "moving tastes": Case(
        Kind(drifting, 150, 6, "one", held_out=True, drifts=True, **LATE),
        "tastes move",
        Remedy(
            "forget, with a half-life of 4,000 visits",
            policy=lambda shop: discounted(pooled_thompson(baseline=shop.known_ranking), half_life=4_000),
        ),
    ),
    "crowd": Case(
        replace(PLAIN_SHOP, visitors=Choosers(), make=ordinary(200, 0.08)), "neighbours take clicks from one another"
    ),
    "shelves": Case(replace(PLAIN_SHOP, make=shelves, n_arms=280), "products come, go, and are sold out"),
    "3,000 products": Case(replace(PLAIN_SHOP, make=ordinary(3_000, 0.02), n_arms=3_000, k=8), "too many to try"),
    "rates of 0.1 %": Case(replace(PLAIN_SHOP, make=ordinary(300, 0.001, 0.8), n_arms=300), "clicks are rare"),
    "best list": Case(replace(PLAIN_SHOP, goal=(0.97, 0.995)), "there is nothing to gain"),
    "2,000 visits": Case(
        replace(PLAIN_SHOP, make=ordinary(30, 0.05), n_arms=30, k=5), "no time to learn", visits=2_000
    ),
}

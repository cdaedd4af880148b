"""Shops with known truth: how likely visitors are to click or buy, whatever is shown to them.

A generator draws one shop: the chance that a visitor of a segment takes a product, by phase of the time that the
contest lasts. ``Shop`` holds several draws of one kind as arrays. The kinds in ``DEVELOPMENT`` were used to choose and
tune policies; those in ``HELD_OUT`` were written for measuring alone, and nothing may be tuned on them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from dev.earnings.visitors import ALONE, Choosers, Visitors
from superarm.actions import Actions, Subsets
from superarm.context import Context, Features
from superarm.core.arrays import Bools, Floats, Ints
from superarm.problem import Problem
from superarm.rewards import Coverage, Linear

Rng = np.random.Generator


class Draft(NamedTuple):
    """One draw of a shop: chances (n_phases, n_segments, n_arms), and which products are for sale in which phase.

    A purchase is worth ``amounts`` (n_arms,) of the largest one that counts, in the mean; None: every click counts 1.
    ``lists`` (n_phases, n_arms) are the rankings of the phases, if the list moves.
    """

    chances: Floats
    for_sale: Bools | None = None
    amounts: Floats | None = None
    lists: Ints | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of shop: the generator and what all its draws have in common.

    ``form`` is ``one`` (one slate for all visitors, who are alike), ``items`` (one slate for all, segments are items),
    ``context`` (a slate for each segment) or ``hidden`` (one slate for all; segments exist, and nobody knows them). A
    click is told up to ``delay`` visits later, and with the chance ``lost`` never; what is not clicked is never told. A
    purchase varies by ``spread``, the deviation of its logarithm; ``limit`` is the amount that counts 1, and more is
    told as 1, whereas earnings count ``in_full`` or as they are told. With ``drifts`` the taste of visitors changes.
    ``visitors`` says what the products of a page do to one another, ``bots`` which share of visits click everything,
    ``rule`` is the rule that slates obey, if there is one, and ``goal`` which share of the best slates' earnings the
    list has: between two shares. With None the generator gives products in the list's order.
    """

    make: Callable[[Rng], Draft]
    n_arms: int
    k: int
    form: str
    shares: tuple[float, ...] = (1.0,)
    delay: int = 0
    lost: float = 0.0
    spread: float = 0.0
    drifts: bool = False
    held_out: bool = False
    visitors: Visitors = ALONE
    bots: float = 0.0
    limit: float = 1.0
    in_full: bool = False
    goal: tuple[float, float] | None = (0.6, 0.98)
    rule: Actions | None = None

    @property
    def reaches(self) -> bool:
        """Whether a visit counts once, if anything is taken; otherwise clicks add up."""
        return self.form in ("items", "hidden")


@dataclass(frozen=True)
class Shop:
    """Draws of one kind of shop, R of them, as arrays: (R, n_phases, n_segments, n_arms) and so on.

    ``ranking`` (n_arms,) is the shop's own ranking of its products, the same in all draws: its first places that are
    for sale are the present list; ``lists`` (n_phases, n_arms) are those of a list that moves. Where visitors are known
    people, ``people`` (R, n_people, n_arms) says who takes what, and those of segment n are from ``groups[n]`` to
    ``groups[n + 1] - 1``.
    """

    name: str
    kind: Kind
    problem: Problem
    chances: Floats
    for_sale: Bools
    amounts: Floats
    ranking: Ints
    people: Bools | None = None
    groups: Any = ()
    lists: Ints | None = None
    means: Floats = field(init=False)

    def __post_init__(self) -> None:
        factor = mean_amount(self.amounts, self.kind.spread) if self.kind.spread else np.ones_like(self.amounts)
        if self.kind.in_full:
            factor = self.amounts
        object.__setattr__(self, "means", self.chances * factor[:, None, None, :])

    def __len__(self) -> int:
        return len(self.chances)

    @property
    def known_ranking(self) -> list[int]:
        """The ranking that the shop can give on the first day: of the products that are for sale then."""
        return self.ranking_of(0)

    def ranking_of(self, phase: int) -> list[int]:
        """The ranking that the shop can give in a phase: of the products that are for sale then."""
        ranking = self.ranking if self.lists is None else self.lists[phase]
        return ranking[self.for_sale[0, phase, ranking]].tolist()

    def best_slates(self, phase: int) -> Ints:
        """The best slate of each draw for each segment in a phase, (R, n_segments, k)."""
        if self.people is not None:
            alike, n = np.ones(self.people.shape[1]), len(self.kind.shares)
            return np.stack([np.tile(greedy_slate(table, alike, self.kind.k), (n, 1)) for table in self.people])
        drawn = zip(self.means[:, phase], self.for_sale[:, phase], strict=True)
        return np.stack([best_slates(p, sale, self.kind) for p, sale in drawn])


def mean_amount(amounts: Floats, spread: float) -> Floats:
    """The mean of min(1, X) for log-normal X with means ``amounts`` and the deviation ``spread`` of logarithms."""
    from scipy.special import ndtr

    middle = np.log(amounts) - spread**2 / 2.0
    return amounts * ndtr(-(middle + spread**2) / spread) + ndtr(middle / spread)


def draw_shop(name: str, draws: int, first: int = 0, kind: Kind | None = None) -> Shop:
    """Draws of the kind ``name``, or of another way in which its owner could set it up."""
    kind = KINDS[name] if kind is None else kind
    drafts = [_draw(name, kind, number) for number in range(first, first + draws)]
    place, order = common_places(name, kind.n_arms)
    parts = [[getattr(draft, part) for draft in drafts] for part in ("chances", "for_sale", "amounts")]
    chances, for_sale, amounts = (np.stack([part[..., order] for part in those]) for those in parts)
    lists = None if drafts[0].lists is None else place[drafts[0].lists]  # the same in all draws
    return Shop(name, kind, make_problem(kind), chances, for_sale, amounts, place, lists=lists)


def common_places(name: str, n_arms: int) -> tuple[Ints, Ints]:
    """The arm of each rank, in random order, the same in all draws; and the rank of each arm."""
    place = np.random.default_rng(crc32(name.encode())).permutation(n_arms)
    return place, np.argsort(place)


def _draw(name: str, kind: Kind, number: int) -> Draft:
    """One draw, with its products in the order of the list."""
    rng = np.random.default_rng([crc32(name.encode()), number])
    draft = kind.make(rng)
    chances = np.clip(draft.chances if draft.chances.ndim == 3 else draft.chances[None], 1e-4, 0.6)
    for_sale = np.ones((len(chances), kind.n_arms), bool) if draft.for_sale is None else draft.for_sale
    phases = max(len(chances), len(for_sale))
    chances = np.repeat(chances, phases // len(chances), 0)
    amounts = np.ones(kind.n_arms) if draft.amounts is None else draft.amounts
    if kind.goal is None:
        return Draft(chances, for_sale, amounts, draft.lists)
    ranking = rank_products(rng, chances[0] * amounts, for_sale[0], kind)
    return Draft(chances[:, :, ranking], for_sale[:, ranking], amounts[ranking])


def rank_products(rng: Rng, p: Floats, for_sale: Bools, kind: Kind) -> Ints:
    """A noisy ranking of products, the noise such that its first k earn a share of the best slate as ``goal`` says."""
    shares, goal, noise = np.array(kind.shares), rng.uniform(*kind.goal or (1.0, 1.0)), rng.normal(size=kind.n_arms)
    sold_out = np.where(for_sale, 0.0, -99.0)
    mean = np.log(shares @ p) + sold_out
    best = slate_values(p, best_slates(p, for_sale, kind), kind) @ shares
    order = np.argsort(-mean)
    for n in range(1, 121):
        if slate_values(p, np.tile(order[: kind.k], (len(p), 1)), kind) @ shares <= goal * best:
            break
        order = np.argsort(-(mean + 0.05 * n * noise))
    return order


def best_slates(p: Floats, for_sale: Bools, kind: Kind) -> Ints:
    """The best slate for each segment at the means ``p`` (n_segments, n_arms); one for all unless there are contexts.

    It is the greedy one where products of a slate do something to one another, or to what is reached.
    """
    there = np.where(for_sale, p, 0.0)
    if isinstance(kind.visitors, Choosers):
        return np.stack([best_choice(row, kind) for row in there])
    if not kind.reaches:
        return np.argsort(-there, axis=1)[:, : kind.k]
    return np.tile(greedy_slate(there, np.array(kind.shares), kind.k), (len(p), 1))


def greedy_slate(p: Floats, shares: Floats, k: int) -> Ints:
    """The slate by which most visitors are reached, found greedily, (k,)."""
    left = shares
    slate: list[int] = []
    for _ in range(k):
        gain = left @ p
        gain[slate] = -1.0
        slate.append(int(gain.argmax()))
        left = left * (1.0 - p[:, slate[-1]])
    return np.array(slate)


def best_choice(p: Floats, kind: Kind) -> Ints:
    """The slate of which most is taken, found greedily, (k,)."""
    slate = np.empty(0, np.int64)
    for _ in range(kind.k):
        more = np.column_stack([np.tile(slate, (len(p), 1)), np.arange(len(p))])
        worth = kind.visitors.chances(p[more], more).sum(1)
        worth[slate] = -1.0
        slate = np.append(slate, worth.argmax())
    return slate


def slate_values(p: Floats, slates: Ints, kind: Kind) -> Floats:
    """What a visitor of each segment brings, (n_segments,): clicks, or whether there is one if it ``reaches``."""
    shown = kind.visitors.chances(np.take_along_axis(p, slates, 1), slates)
    return 1.0 - np.prod(1.0 - shown, 1) if kind.reaches else shown.sum(1)


def make_problem(kind: Kind) -> Problem:
    """The problem of a kind of shops, as its owner would write it."""
    actions = kind.rule or Subsets(kind.k)
    if kind.form == "hidden":
        return Problem(kind.n_arms, 1, Coverage(), actions)
    if kind.form == "items":
        return Problem(kind.n_arms, len(kind.shares), Coverage(), actions, weights=kind.shares)
    segments = [str(n) for n in range(len(kind.shares))]
    context = Context(Features(categorical={"segment": segments})) if kind.form == "context" else None
    return Problem(kind.n_arms, 1, Linear(), actions, context=context)


# --- generators for development ---


def lognormal(rng: Rng, n: Any, middle: float, spread: float) -> Floats:
    """Log-normal numbers with the median ``middle``."""
    return middle * np.exp(spread * rng.normal(size=n))


def by_category(rng: Rng, n_arms: int, n_segments: int, n_categories: int, spread: float) -> Floats:
    """How much each segment likes the category of each product, (n_segments, n_arms)."""
    return lognormal(rng, (n_segments, n_categories), 1.0, spread)[:, rng.integers(0, n_categories, n_arms)]


def plain(n_arms: int, n_segments: int, middle: float, spread: float = 0.6, liking: float = 0.7) -> Any:
    """A generator of shops with eight categories of products."""

    def make(rng: Rng) -> Draft:
        return Draft(lognormal(rng, n_arms, middle, spread) * by_category(rng, n_arms, n_segments, 8, liking))

    return make


def revenue(rng: Rng) -> Draft:
    """Purchases whose amounts have heavy tails."""
    p = plain(200, 3, 0.02)(rng).chances
    return Draft(p, amounts=np.clip(lognormal(rng, 200, 0.05, 0.7), 0.005, 0.6))


def daily(rng: Rng) -> Draft:
    """Forty days: each day two products come and two go for good."""
    arm, day = np.arange(240), np.arange(40)[:, None]
    comes, goes = np.maximum(0, arm - 160) // 2, np.where(arm < 80, arm // 2 + 1, 99)
    return Draft(plain(240, 3, 0.025)(rng).chances, (comes <= day) & (day < goes))


def drift(rng: Rng) -> Draft:
    """Forty weeks in which the appeal of every product changes slowly."""
    appeal, phases = rng.normal(size=150), []
    liking = np.exp(0.35 * rng.normal(size=(3, 2)) @ rng.normal(size=(2, 150)))
    for _ in range(40):
        appeal = 0.97 * appeal + np.sqrt(1.0 - 0.97**2) * rng.normal(size=150)
        phases.append(0.02 * np.exp(0.6 * appeal) * liking)
    return Draft(np.array(phases))


def large(rng: Rng) -> Draft:
    """Two thousand products, few of which are good."""
    liking = np.exp(0.35 * rng.normal(size=(2, 2)) @ rng.normal(size=(2, 2000)))
    return Draft(lognormal(rng, 2000, 0.008, 1.0) * liking)


# --- held-out generators: policies may be measured on them, not tuned ---


def tastes(rng: Rng) -> Draft:
    """Log-odds of three hidden tastes of five segments."""
    product, segment = rng.normal(size=(3, 160)), rng.normal(size=(5, 3))
    odds = -3.9 + 0.55 * rng.normal(size=160) + 0.4 * segment @ product
    return Draft(1.0 / (1.0 + np.exp(-odds)))


def brands(rng: Rng) -> Draft:
    """Brands of very different size and appeal; a segment likes some of them."""
    brand = np.minimum(rng.geometric(0.08, 250), 30) - 1
    appeal, own = rng.gamma(3.0, 1.0 / 3.0, 30), rng.gamma(4.0, 1.0 / 4.0, (3, 250))
    liked = np.where(rng.random((3, 30)) < 0.3, 2.5, 0.8)
    return Draft(0.03 * (appeal * liked)[:, brand] * own)


def stars(rng: Rng) -> Draft:
    """One product in ten is three or four times as good as the others."""
    star = rng.random(120) < 0.1
    return Draft(np.where(star, rng.beta(8.0, 92.0, 120), rng.beta(2.5, 97.5, 120))[None])


def niches(rng: Rng) -> Draft:
    """Most products are for one of six segments."""
    p = rng.uniform(0.005, 0.02, (6, 90))
    p[rng.integers(0, 6, 90), np.arange(90)] = rng.uniform(0.02, 0.14, 90)
    return Draft(p)


def prices(rng: Rng) -> Draft:
    """Dear products are bought less often, and not all are worth their price."""
    price = np.minimum(0.02 * (1.0 + rng.pareto(2.0, 150)), 0.5)
    demand = 0.05 * (0.02 / price) ** 0.6 * np.exp(0.5 * rng.normal(size=150))
    return Draft(demand * np.exp(0.3 * rng.normal(size=(2, 150))), amounts=price)


def popularity(rng: Rng) -> Draft:
    """Popularity falls as a power of the rank."""
    rank = rng.permutation(400) + 1.0
    return Draft((0.11 * rank**-0.45 * rng.uniform(0.8, 1.2, 400))[None])


def seasons(rng: Rng) -> Draft:
    """Twenty weeks, in each of which six products are replaced."""
    arm, week = np.arange(300), np.arange(20)[:, None]
    comes, goes = np.maximum(0, arm - 186) // 6 + (arm >= 186), np.where(arm < 114, arm // 6 + 1, 99)
    base, other = rng.beta(2.0, 70.0, 300), rng.beta(2.0, 70.0, 300)
    return Draft(np.stack([base, 0.6 * base + 0.4 * other]), (comes <= week) & (week < goes))


FOUR, THREE, TWO = (0.4, 0.3, 0.2, 0.1), (0.5, 0.3, 0.2), (0.6, 0.4)

DEVELOPMENT = {
    "corner": Kind(plain(20, 2, 0.05, liking=0.5), 20, 3, "items", TWO),
    "front page": Kind(plain(200, 4, 0.025), 200, 6, "items", FOUR, delay=300, lost=0.05),
    "pages": Kind(plain(200, 4, 0.025), 200, 6, "context", FOUR),
    "rare clicks": Kind(plain(200, 3, 0.002, 0.8, 0.5), 200, 5, "items", THREE),
    "revenue": Kind(revenue, 200, 6, "context", THREE, spread=0.8),
    "daily": Kind(daily, 240, 6, "context", THREE, delay=300),
    "drift": Kind(drift, 150, 6, "items", THREE, drifts=True),
    "large": Kind(large, 2000, 8, "context", TWO),
}
HELD_OUT = {
    "tastes": Kind(tastes, 160, 5, "items", (0.3, 0.25, 0.2, 0.15, 0.1), delay=450, lost=0.03, held_out=True),
    "niches": Kind(niches, 90, 6, "items", (0.25, 0.2, 0.2, 0.15, 0.1, 0.1), delay=150, held_out=True),
    "stars": Kind(stars, 120, 4, "one", held_out=True),
    "popularity": Kind(popularity, 400, 6, "one", delay=300, lost=0.05, held_out=True),
    "brands": Kind(brands, 250, 6, "context", THREE, delay=150, held_out=True),
    "seasons": Kind(seasons, 300, 5, "context", TWO, delay=300, lost=0.05, held_out=True),
    "prices": Kind(prices, 150, 5, "context", TWO, spread=1.0, held_out=True),
}
KINDS = DEVELOPMENT | HELD_OUT

"""Which shops does the service warn? ``python -m dev.benchmarks.warned`` plays kinds of shops.

In some something is wrong, in the others nothing is. Prints in how many draws each warning was given at the end, of
products that take each other's clicks, visitors with hidden tastes, programs, amounts at the limit, and a moved list.
The policy begins with the shop's list of top sellers, which a tenth of the visitors sees; clicks come up to 300 views
late, and 3 % never.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from superarm.core.arrays import Floats, Ints
from superarm.decisions import Expired, Reported, open_record
from superarm.decisions.answers import Reader, read_answer
from superarm.decisions.rules import feedback
from superarm.service.domain.decision import DecisionRecord, advance_record
from superarm.service.domain.events import Armed, Changed, Created
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import fixed_slate
from superarm.service.domain.spec import PolicySpec, ProblemSpec, RewardSpec, Settings, complete, to_problem
from superarm.service.domain.warnings import list_warnings
from superarm.service.runtime.ask import plan_decision
from superarm.service.schemas import AskBody

Rng = np.random.Generator
Visit = Callable[[Rng, Ints, int], Floats]
"""What a visitor does with the products of a page, in a view: a value for each."""

VIEWS, N, K, DELAY, LOST, CONTROL, DAY = 6_000, 60, 6, 300, 0.03, 0.1, 500
PAGES = 20
"""A page of the policy is shown to so many visitors, so that a draw takes seconds."""


class Shop(NamedTuple):
    """A shop: what visitors do, the shop's list, and what changes at the end of a day."""

    visit: Visit
    ranking: list[int]
    renew: Callable[["Played", int], None] | None = None
    segments: int = 1


def clicking(rates: Floats) -> Visit:
    """Clicks that are independent of one another."""
    return lambda rng, page, t: (rng.random(len(page)) < rates[page]).astype(float)


def popular(rng: Rng, rates: Floats, noise: float = 25.0) -> list[int]:
    """The products by the clicks of earlier visitors: a list that is good, and not the best."""
    return np.argsort(-rng.poisson(noise * rates / rates.mean() * 0.5)).tolist()


def taste(rng: Rng, mean: float = 0.06) -> Floats:
    """How likely a visitor is to click on each product."""
    return np.minimum(rng.lognormal(np.log(mean), 0.6, N), 0.6)


def plain(rng: Rng) -> Shop:
    rates = taste(rng)
    return Shop(clicking(rates), popular(rng, rates))


def rare(rng: Rng) -> Shop:
    rates = taste(rng, 0.008)
    return Shop(clicking(rates), popular(rng, rates))


def near_best(rng: Rng) -> Shop:
    rates = taste(rng)
    return Shop(clicking(rates), popular(rng, rates, 10_000.0))


def bad_list(rng: Rng) -> Shop:
    rates = taste(rng)
    return Shop(clicking(rates), rng.permutation(N).tolist())


def zealous(rng: Rng) -> Shop:
    """Some visitors click four times as much as others."""
    rates = taste(rng)

    def visit(rng: Rng, page: Ints, t: int) -> Floats:
        return (rng.random(len(page)) < np.minimum(rates[page] * rng.choice([0.5, 0.5, 2.0]), 0.9)).astype(float)

    return Shop(visit, popular(rng, rates))


def places(rng: Rng) -> Shop:
    """The first place is looked at three times as often as the last."""
    rates = taste(rng, 0.1)

    def visit(rng: Rng, page: Ints, t: int) -> Floats:
        return (rng.random(len(page)) < rates[page] * np.linspace(1.0, 0.33, len(page))).astype(float)

    return Shop(visit, popular(rng, rates))


def drifting(rng: Rng) -> Shop:
    """All rates follow the days alike."""
    rates = taste(rng)

    def visit(rng: Rng, page: Ints, t: int) -> Floats:
        return (rng.random(len(page)) < rates[page] * (1.0 + 0.3 * np.sin(t * 2.0 * np.pi / DAY))).astype(float)

    return Shop(visit, popular(rng, rates))


def segmented(rng: Rng) -> Shop:
    """Three segments with tastes of their own, which the shop knows and sends."""
    rates = taste(rng) * rng.lognormal(0.0, 0.8, (3, N))
    rates = np.minimum(rates, 0.6)

    def visit(rng: Rng, page: Ints, t: int) -> Floats:
        return (rng.random(len(page)) < rates[t % 3, page]).astype(float)

    return Shop(visit, popular(rng, rates.mean(0)), segments=3)


def renewed(rng: Rng) -> Shop:
    """New products each day, and a list that the shop sends each day."""
    return coming_and_going(rng, True)


def moved(rng: Rng) -> Shop:
    """New products each day, and a list of the first day."""
    return coming_and_going(rng, False)


def coming_and_going(rng: Rng, sends: bool) -> Shop:
    """Each day three products come and three of the list go."""
    rates = taste(rng).tolist()
    ranking = popular(rng, np.array(rates))

    def visit(rng: Rng, page: Ints, t: int) -> Floats:
        return (rng.random(len(page)) < np.array(rates)[page]).astype(float)

    def renew(shop: "Played", day: int) -> None:
        state, names = shop.state, [f"new {day} {n}" for n in range(3)]
        rates.extend(taste(rng)[:3].tolist())
        here = np.flatnonzero(~state.retired)
        gone = sorted(here, key=lambda j: -rates[j])[:9:3]
        state.apply(Armed(0, names, [int(j) for j in gone]))
        if sends:
            here = np.flatnonzero(~state.retired)
            listed = [
                state.arms.all[j] for j in here[np.argsort(-np.array(rates)[here] * rng.lognormal(0, 0.2, len(here)))]
            ]
            policy = replace(state.settings.policy, baseline=listed)
            changed = replace(state.settings, policy=policy, control_slate=listed[:K])
            state.apply(Changed(0, len(state.versions) + 1, changed, t=state.t - 1))

    return Shop(visit, ranking, renew)


def money(rng: Rng, limit: float) -> Shop:
    """Purchases of amounts with a heavy tail, as shares of a limit in medians."""
    rates, prices = taste(rng, 0.03), rng.lognormal(0.0, 0.9, N)

    def visit(rng: Rng, page: Ints, t: int) -> Floats:
        amounts = prices[page] * rng.lognormal(0.0, 0.8, len(page))
        return np.where(rng.random(len(page)) < rates[page], np.minimum(amounts / limit, 1.0), 0.0)

    return Shop(visit, popular(rng, rates * prices))


def uncapped(rng: Rng) -> Shop:
    return money(rng, 500.0)


def capped(rng: Rng) -> Shop:
    """The limit is what one purchase in a hundred exceeds, about."""
    return money(rng, 12.0)


def rivals(rng: Rng) -> Shop:
    """Ten kinds of products: a visitor needs one kind, and takes at most one product of it."""
    kind, fits = np.arange(N) % 10, taste(rng, 0.3)
    need = rng.dirichlet(np.full(10, 2.0))

    def visit(rng: Rng, page: Ints, t: int) -> Floats:
        liked = np.flatnonzero((kind[page] == rng.choice(10, p=need)) & (rng.random(len(page)) < fits[page]))
        done = np.zeros(len(page))
        if len(liked):
            done[rng.choice(liked)] = 1.0
        return done

    return Shop(visit, popular(rng, need[kind] * fits))


def hidden(rng: Rng) -> Shop:
    """Three groups of visitors that the shop does not know, each with products of its own."""
    mine = np.arange(N) % 3
    rates = np.where(mine == np.arange(3)[:, None], np.minimum(3.0 * taste(rng, 0.08), 0.8), 0.02)

    def visit(rng: Rng, page: Ints, t: int) -> Floats:
        return (rng.random(len(page)) < rates[rng.integers(3), page]).astype(float)

    return Shop(visit, popular(rng, rates.mean(0)))


def programs(rng: Rng) -> Shop:
    """One visitor in ten is a program that clicks on everything."""
    return crawled(rng, 0.1)


def few_programs(rng: Rng) -> Shop:
    """One in fifty is."""
    return crawled(rng, 0.02)


def crawled(rng: Rng, share: float) -> Shop:
    rates = taste(rng)

    def visit(rng: Rng, page: Ints, t: int) -> Floats:
        return (rng.random(len(page)) < (1.0 if rng.random() < share else rates[page])).astype(float)

    return Shop(visit, popular(rng, rates))


SOUND = {
    "plain": plain, "rare": rare, "near best": near_best, "bad list": bad_list, "zealous": zealous, "places": places,
    "drifting": drifting, "segments": segmented, "renewed": renewed, "uncapped": uncapped,
}  # fmt: skip
BROKEN = {
    "substitutes": (rivals, "each other"), "moved list": (moved, "today's list"), "capped money": (capped, "limit"),
    "hidden tastes": (hidden, "tastes"), "programs": (programs, "programs"), "few programs": (few_programs, "programs"),
}  # fmt: skip


class Played:
    """A problem of the service whose visitors come from a shop."""

    def __init__(self, make: Callable[[Rng], Shop], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.shop = make(self.rng)
        arms = [f"product {n}" for n in range(N)]
        listed = [arms[j] for j in self.shop.ranking[:40]]
        settings = Settings(
            policy=PolicySpec(baseline=listed),
            at_window_end=0.0,
            window_s=3600.0,
            control=CONTROL,
            control_slate=listed[:K],
        )
        spec: Any = {"items": ["click"], "k": K, "reward": RewardSpec("linear"), "settings": settings}
        if self.shop.segments > 1:
            names = [f"s{n}" for n in range(self.shop.segments)]
            spec["context"] = {"features": {"categorical": {"segment": names}}}
        made = msgspec.convert({"arms": arms, **msgspec.to_builtins(spec)}, ProblemSpec)
        self.state = ProblemState(Created(0, complete(made, to_problem(made)), f"key {seed}"))
        self.waiting: dict[int, list[tuple[DecisionRecord, Floats]]] = {}
        self.pages: dict[int, Any] = {}

    def play(self, views: int) -> list[str]:
        """The warnings after so many views."""
        for t in range(views):
            self.view(t)
            for record, values in self.waiting.pop(t, ()):
                self.finish(record, values)
            if self.shop.renew is not None and t % DAY == DAY - 1:
                self.shop.renew(self, t // DAY)
                self.pages.clear()
        self.state.flush()
        return list_warnings(self.state)

    def view(self, t: int) -> None:
        """A visitor asks and clicks."""
        state, segment = self.state, t % self.shop.segments
        if t % PAGES < self.shop.segments or segment not in self.pages:
            body = AskBody(id=f"d{t}")
            if self.shop.segments > 1:
                body = AskBody(id=f"d{t}", context={"segment": f"s{segment}"})
            state.versions[-1], settings = replace(state.settings, control=0.0), state.settings
            self.pages[segment] = plan_decision(state, "p", f"d{t}", body, "", t)
            state.versions[-1] = settings
        asked = replace(self.pages[segment], id=f"d{t}", t=state.t, at=t, group="policy", version=len(state.versions))
        if self.rng.random() < CONTROL:
            slate = fixed_slate(state, list(state.settings.control_slate), ~state.retired)
            asked = replace(asked, action=tuple(slate), policy_action=asked.action, group="control")
        record = open_record(asked)
        state.move(None, record)
        values = self.shop.visit(self.rng, np.array(asked.action, np.int64), t)
        if self.rng.random() < LOST:
            values = np.zeros(len(values))
        self.waiting.setdefault(t + 1 + int(self.rng.integers(DELAY)), []).append((record, values))

    def finish(self, record: DecisionRecord, values: Floats) -> None:
        """Clicks come, and the window ends."""
        state = self.state
        reader = Reader(state.problem, state.arms, state.items, False)
        units = [(state.arms.all[j], 0, x) for j, x in zip(record.action, values.tolist(), strict=True) if x]
        if units:
            answer = read_answer(reader, record, Reported(clicks={name: x for name, _, x in units}))
            told = feedback(record, answer)
            if told is not None:
                after = advance_record(record, told)
                state.move(record, after)
                record = after
        if not record.closed:
            state.move(record, advance_record(record, Expired(0, 0.0)))


def main() -> None:
    """Print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--views", type=int, default=VIEWS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    wanted: dict[str, tuple[Any, str]] = {name: (make, "") for name, make in SOUND.items()} | BROKEN
    for name, (make, word) in wanted.items():
        if args.only not in name:
            continue
        found = [Played(make, args.first + n).play(args.views) for n in range(args.draws)]
        right = sum(any(word in one for one in said) for said in found) if word else sum(not said for said in found)
        others = sorted({one for said in found for one in said if not word or word not in one})
        print(f"{name:16} {'warned' if word else 'silent'} {right} of {args.draws}", *others, sep="\n    ", flush=True)


if __name__ == "__main__":
    main()

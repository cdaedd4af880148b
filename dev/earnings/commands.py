"""``python -m dev.earnings``: every policy in every shop, and the tables of what they earned."""

import functools
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from dev.earnings.assumptions import CASES, DRAWS, Remedy
from dev.earnings.contest import ServedShop, Way
from dev.earnings.learnt import LearntShop
from dev.earnings.people import MOVIELENS, draw_real, real_shops
from dev.earnings.report import FROM_LIST, LEARNT, LIST, REMEDIED, Entry, publish, summarise, write_report
from dev.earnings.rivals import BinnedThompson, KnownRates, knows
from dev.earnings.service import say
from dev.earnings.shops import DEVELOPMENT, HELD_OUT, KINDS, Shop, draw_shop
from superarm.policies import Policy, cts, discounted, kl_moss, kl_ucb, pooled_thompson

VISITS = 20_000
FIRST = 100
"""The number of the first draw: what was drawn before was looked at while the policy was repaired."""

LEARNT_DRAWS = 8
"""Agents that learn items serve one draw after the other, so they have fewer of them; they start without a list."""

KNOWN, FORGETFUL = "known rates", "pooled_thompson, discounted"
POLICIES: dict[str, Callable[[Shop], Policy[Any]]] = {
    LIST: lambda shop: pooled_thompson(baseline=shop.known_ranking),
    "pooled_thompson": lambda shop: pooled_thompson(),
    "EB Thompson, list": lambda shop: BinnedThompson(tuple(shop.known_ranking)),
    "cts": lambda shop: cts(),
    "kl_ucb": lambda shop: kl_ucb(),
    "kl_moss": lambda shop: kl_moss(),
    KNOWN: KnownRates,
    FORGETFUL: lambda shop: discounted(pooled_thompson(), half_life=4_000),
}
"""The policies of the contest, each for a shop; those that take longest come first."""

REPLAYED = 5
"""So many draws of a shop are replayed on the service."""


class Task(NamedTuple):
    """A policy in a shop, or what is done in a shop whose assumptions fail."""

    shop: str
    policy: str
    draws: int
    visits: int


def play(name: str, policy: str, draws: int, visits: int) -> Entry:
    """What a policy earns in the draws of a shop."""
    if policy in (FROM_LIST, REMEDIED):
        return play_case(name, policy, draws, visits)
    shop = draw_shop(name, draws, FIRST) if name in KINDS else draw_real(name, draws, FIRST)
    served = LearntShop(shop, None, visits) if policy == LEARNT else ServedShop(shop, POLICIES[policy](shop), visits)
    return summarise(name, shop.kind.held_out, policy, served.run())


def play_case(name: str, how: str, draws: int, visits: int) -> Entry:
    """What the default earns from the list where one of its assumptions fails, and what the remedy earns."""
    case = CASES[name]
    remedy = Remedy("", way=Way(logs=True)) if how == FROM_LIST or case.remedy is None else case.remedy
    shop = draw_shop(name, draws, FIRST, remedy.kind or case.kind)
    policy, visits = remedy.policy(shop), min(visits, case.visits)
    served = LearntShop(shop, policy, visits) if remedy.items else ServedShop(shop, policy, visits, way=remedy.way)
    entry = summarise(name, True, how, served.run())
    return replace(entry, says=say(served, REPLAYED)) if remedy.way.logs else entry


def tasks(shops: list[str], draws: int, visits: int) -> list[Task]:
    """What is to be played in shops, the longest first."""
    found = []
    for name in shops:
        if name in CASES:
            ways = (FROM_LIST,) if CASES[name].remedy is None else (FROM_LIST, REMEDIED)
            found += [Task(name, how, min(draws, DRAWS), visits) for how in ways]
            continue
        kind = KINDS.get(name)
        suits = {FORGETFUL: kind is not None and kind.drifts, KNOWN: kind is not None and knows(kind)}
        found += [Task(name, policy, draws, visits) for policy in POLICIES if suits.get(policy, True)]
        if name == MOVIELENS:
            found.append(Task(name, LEARNT, min(draws, LEARNT_DRAWS), visits))
    order = [LEARNT, REMEDIED, *POLICIES, FROM_LIST]
    return sorted(found, key=lambda one: order.index(one.policy))


def run_contest(todo: list[Task], workers: int, tell: Callable[[str], None]) -> list[Entry]:
    """Play all tasks on several processes; ``tell`` gets a line for each that is done."""
    entries: list[Entry] = []
    with ProcessPoolExecutor(workers) as pool:
        for entry in (map if workers == 1 else pool.map)(play, *zip(*todo, strict=True)):
            entries.append(entry)
            tell(f"{len(entries)} of {len(todo)}: {entry.shop}, {entry.policy}")
    known = [*KINDS, *real_shops(), *CASES]
    return sorted(entries, key=lambda one: known.index(one.shop))


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("results/earnings"), show_default=True)
@click.option("--draws", type=click.IntRange(2), default=20, show_default=True, help="Draws of each shop.")
@click.option("--shop", "shops", multiple=True, help="A shop; all but those for development by default.")
@click.option("--workers", type=click.IntRange(1), help="How many processes; all cores by default.")
@click.option("--docs", type=click.Path(path_type=Path), help="Also write the page's and README's numbers there.")
def main(out: Path, draws: int, shops: tuple[str, ...], workers: int | None, docs: Path | None) -> None:
    """Measure what policies earn in shops with known truth, relative to the shop's own list."""
    known = [*HELD_OUT, *real_shops(), *CASES, *DEVELOPMENT]
    unknown = [shop for shop in shops if shop not in known]
    if unknown:
        raise click.UsageError(f"there is no shop {unknown[0]!r}; there are {', '.join(known)}")
    chosen = [shop for shop in known if (shop in shops if shops else shop not in DEVELOPMENT)]
    tell = functools.partial(click.echo, err=True)
    entries = run_contest(tasks(chosen, draws, VISITS), workers or os.cpu_count() or 1, tell)
    paths = write_report(entries, out)
    if docs is not None:
        publish(out, docs)
    click.echo(paths[0].read_text())
    for path in paths:
        click.echo(f"{'figure' if path.suffix == '.png' else 'table'}: {path}")

"""``python -m dev.earnings``: every policy in every shop, and the table of what they earned."""

import functools
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import click

from dev.earnings.contest import ServedShop
from dev.earnings.people import draw_real, real_shops
from dev.earnings.report import Entry, format_summary, format_table, summarise, write_report
from dev.earnings.shops import KINDS, Shop, draw_shop
from superarm.policies import Policy, cts, discounted, kl_moss, kl_ucb, pooled_thompson

VISITS = 20_000
FORGETFUL = "pooled_thompson, discounted"
"""A policy for shops that drift; it does not compete elsewhere."""

POLICIES: dict[str, Callable[[Shop], Policy[Any]]] = {
    "kl_ucb": lambda shop: kl_ucb(),
    "kl_moss": lambda shop: kl_moss(),
    "cts": lambda shop: cts(),
    "pooled_thompson": lambda shop: pooled_thompson(),
    "pooled_thompson, baseline": lambda shop: pooled_thompson(baseline=shop.known_ranking),
    FORGETFUL: lambda shop: discounted(pooled_thompson(), half_life=4_000),
}
"""The policies of the contest, each for a shop."""


def play(name: str, policy: str, draws: int, visits: int) -> Entry:
    """What a policy earns in the draws of a shop."""
    shop = draw_shop(name, draws) if name in KINDS else draw_real(name, draws)
    return summarise(name, shop.kind.held_out, policy, ServedShop(shop, POLICIES[policy](shop), visits).run())


def run_contest(draws: int, shops: list[str], visits: int, workers: int, tell: Callable[[str], None]) -> list[Entry]:
    """Every policy in every shop, on several processes; ``tell`` gets a line for each that is done."""
    drifts = [shop for shop in shops if shop in KINDS and KINDS[shop].drifts]
    pairs, entries = [(one, name, draws, visits) for one in shops for name in POLICIES if name != FORGETFUL], []
    pairs += [(shop, FORGETFUL, draws, visits) for shop in drifts]
    with ProcessPoolExecutor(workers) as pool:
        for entry in (map if workers == 1 else pool.map)(play, *zip(*pairs, strict=True)):
            entries.append(entry)
            tell(f"{len(entries)} of {len(pairs)}: {entry.shop}, {entry.policy}")
    return entries


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("results/earnings"), show_default=True)
@click.option("--draws", type=click.IntRange(2), default=20, show_default=True, help="Draws of each shop.")
@click.option("--shop", "shops", multiple=True, help="A shop, all by default; may be given several times.")
@click.option("--workers", type=click.IntRange(1), help="How many processes; all cores by default.")
def main(out: Path, draws: int, shops: tuple[str, ...], workers: int | None) -> None:
    """Measure what policies earn in shops with known truth, relative to the shop's own list."""
    known = [*KINDS, *real_shops()]
    unknown = [shop for shop in shops if shop not in known]
    if unknown:
        raise click.UsageError(f"there is no shop {unknown[0]!r}; there are {', '.join(known)}")
    chosen = [shop for shop in known if not shops or shop in shops]
    tell = functools.partial(click.echo, err=True)
    entries = run_contest(draws, chosen, VISITS, workers or os.cpu_count() or 1, tell)
    click.echo(f"{format_summary(entries)}\n\n{format_table(entries)}")
    for path in write_report(entries, out):
        click.echo(f"{'figure' if path.suffix == '.png' else 'table'}: {path}")

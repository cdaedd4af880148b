"""``superarm run earnings``: every policy in every shop, and the table of what they earned."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import click

from superarm.earnings.contest import ServedShop
from superarm.earnings.people import draw_real, real_shops
from superarm.earnings.report import Entry, format_summary, format_table, summarise, write_report
from superarm.earnings.shops import KINDS, Shop, draw_shop
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


def run_earnings(out: Path | None, draws: int, shops: tuple[str, ...], workers: int, quiet: bool) -> None:
    """Run the contest, print its table, and write table and figure."""
    known = [*KINDS, *real_shops()]
    unknown = [shop for shop in shops if shop not in known]
    if unknown:
        raise click.UsageError(f"there is no shop {unknown[0]!r}; there are {', '.join(known)}")
    chosen = [shop for shop in known if not shops or shop in shops]
    entries = run_contest(draws, chosen, VISITS, workers, lambda line: None if quiet else click.echo(line, err=True))
    if not quiet:
        click.echo(f"{format_summary(entries)}\n\n{format_table(entries)}")
    for path in write_report(entries, out or Path("results") / "earnings"):
        click.echo(f"{'figure' if path.suffix == '.png' else 'table'}: {path}")

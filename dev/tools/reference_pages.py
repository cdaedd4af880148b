"""Write the parts of pages that follow from the program: the gallery, the command line, the HTTP interface.

make pages
"""

import csv
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from dev.tools.http_interface import write_operations
from superarm.experiments.spec.experiment import find_experiment

DOCS = Path(__file__).parents[2] / "docs"
SPECS = Path(__file__).parents[2] / "src" / "superarm" / "experiments" / "spec" / "shipped_specs"
OTHERS = Path(__file__).parents[1] / "experiments"
RECORD = DOCS / "reference" / "gallery" / "pictures.json"
"""What each picture of the gallery shows; written by ``python -m dev.tools.gallery``."""
PUBLISHED = DOCS / "reference" / "published.csv"
"""Published and measured numbers, as ``superarm reproduce`` wrote them."""
GROUPS = {
    "Start here": ("quickstart",),
    "Papers": ("paper", "cascades"),
    "Applications": ("recommendation", "ads", "channels", "sensors", "seeding"),
    "Dependent items": (
        *("items", "champions", "champions-close", "champions-long", "champions-million", "champions-single"),
        *("champions-unequal", "champions-wide"),
    ),
    "Features and changing rates": ("context", "context-constants", "context-batch", "changing"),
}
"""The experiments, shipped or in dev/experiments, in the order of the gallery."""


def write_gallery() -> str:
    """One line per experiment: its title, the command that runs it, its picture and what that shows."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    files = {file.stem: file for home in (SPECS, OTHERS) for file in home.glob("*.toml")}
    missing = set(files) ^ {name for names in GROUPS.values() for name in names}
    if missing:
        raise ValueError(f"GROUPS and the experiments differ in {sorted(missing)}")
    rows = []
    for group, names in GROUPS.items():
        rows.append(f"| **{group}** | | |")
        for name in names:
            experiment = tomllib.loads(files[name].read_text(encoding="utf-8"))
            named = name if (SPECS / f"{name}.toml").exists() else f"dev/experiments/{name}.toml"
            picture = f"[{record[name]['horizon']:,} × {record[name]['replications']}](gallery/{name}.svg)"
            rows.append(f"| {experiment['title']} | `superarm run {named}` | {picture} |")
    return "\n".join(["| experiment | command | picture: rounds × runs |\n|---|---|---|", *rows])


def write_published() -> str:
    """The results of ``superarm reproduce``: what agrees, what does not, and why."""
    rows = list(csv.DictReader(PUBLISHED.read_text(encoding="utf-8").splitlines()))
    parts = ["| result | source | read in | published | run | agree | runs |\n|---|---|---|---:|---:|---:|---:|"]
    reasons = []
    for name in dict.fromkeys(row["Result"] for row in rows):
        experiment, own = find_experiment(name), [row for row in rows if row["Result"] == name]
        source, numbers = experiment.published, [one for one in experiment.claims if one["kind"] == "reported"]
        misses = [row for row in own if row["Agrees"] == "NO"]
        read = {"print": "print", "vector": "a drawing"}[source["read"]]
        counts = f"{len(numbers)} | {len(own)} | {len(own) - len(misses)} | {own[0]['Runs']}"
        paper = re.sub(r": .* \(", " (", source["paper"])  # the bibliography has the titles
        parts.append(f"| `{name}` | {paper}, {source['place']} | {read} | {counts} |")
        reasons.append(f"- **{name}.** {source.get('differs', 'Nothing is known to differ.').strip()}")
        reasons += [_describe_miss(row) for row in misses]
    quick = (
        "Four runs: with `--quick`. Where other results have fewer numbers run than published, the rest was not run."
    )
    return "\n".join([*parts, "", quick, "", "## What differs, and why\n", *reasons])


def _describe_miss(row: dict[str, str]) -> str:
    numbers = " and ".join(f"{float(row[key]):.4g} ± {float(row[key + ' s.e.']):.2g}" for key in ("Published", "Here"))
    return (
        f"  - Not reproduced: {row['Policy']}, {row['Instance']}: published and here {numbers} (p {row['p (Holm)']})."
    )


def write_commands() -> str:
    """What ``superarm`` and each of its commands do, and the names of their options."""
    from superarm.cli import main

    rows = [_describe_command(path, command) for path, command in _commands(main, ("superarm",))]
    return "\n".join(["| command | what it does | options |\n|---|---|---|", *rows])


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _commands(command.commands[name], (*path, name))


def _describe_command(path: tuple[str, ...], command: click.Command) -> str:
    """Not click's own text: its layout depends on the version of click."""
    named = [_argument(one) for one in command.params if isinstance(one, click.Argument)]
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    said = " ".join(inspect.cleandoc(command.help or "").replace("\b\n", "").partition("\n\n")[0].split())
    listed = " ".join(f"`{one.opts[0]}`" for one in options)
    return f"| `{' '.join([*path, *named])}` | {said.replace('|', chr(92) + '|')} | {listed} |"


def _argument(argument: click.Argument) -> str:
    name = (argument.metavar or str(argument.name).upper()).strip("[].")
    return (name if argument.required else f"[{name}]") + ("…" if argument.nargs == -1 else "")


PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "reference/gallery.md": ("<!-- experiments -->", write_gallery),
    "reference/published.md": ("<!-- results -->", write_published),
    "reference/command-line.md": ("<!-- commands -->", write_commands),
    "reference/http.md": ("<!-- operations -->", write_operations),
}
"""The pages, the mark after which their text is written, and what writes it."""


def renew(page: str) -> str:
    """The whole text of a page, with what is written now after its mark."""
    mark, write = PAGES[page]
    head, found, _ = (DOCS / page).read_text(encoding="utf-8").partition(mark)
    if not found:
        raise ValueError(f"{page}: the mark {mark} is missing")
    return f"{head}{mark}\n\n{write().strip()}\n"


if __name__ == "__main__":
    for name in PAGES:
        (DOCS / name).write_text(renew(name), encoding="utf-8")

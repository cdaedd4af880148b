"""Write the parts of pages that follow from the program: the gallery, the command line, the HTTP interface.

make pages
"""

import csv
import inspect
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
HEAD = "| option | meaning |\n|---|---|"
"""The first lines of a table of options."""


def write_gallery() -> str:
    """One section per experiment: what it asks, its picture, and the command that runs it."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    files = {file.stem: file for home in (SPECS, OTHERS) for file in home.glob("*.toml")}
    missing = set(files) ^ {name for names in GROUPS.values() for name in names}
    if missing:
        raise ValueError(f"GROUPS and the experiments differ in {sorted(missing)}")
    parts = []
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        for name in names:
            experiment = tomllib.loads(files[name].read_text(encoding="utf-8"))
            title, text = experiment["title"], experiment["text"].strip().partition("\n\n")[0]
            picture = f"![Regret of each policy: {title}](gallery/{name}.svg)\n"
            parts += [f"### {title}\n", text + "\n", picture, _describe_size(experiment, record[name])]
    return "\n".join(parts)


def _describe_size(experiment: dict[str, Any], shown: dict[str, Any]) -> str:
    """The command that runs the experiment, how much it runs, and how much of that the picture shows."""
    fields = {"horizon": "rounds", "replications": "runs"}
    said = [f"{shown[key]:,} {unit}" for key, unit in fields.items() if shown[key] != experiment[key]]
    if set(shown["instances"]) != set(experiment["instances"]):
        said.append(f"only {', '.join(shown['instances'])}")
    complete = " and ".join(f"{experiment[key]:,} {unit}" for key, unit in fields.items())
    smaller = f" The picture is smaller: {', '.join(said)}." if said else ""
    shipped = (SPECS / f"{experiment['name']}.toml").exists()
    named = experiment["name"] if shipped else f"dev/experiments/{experiment['name']}.toml"
    return f"*`superarm run {named}`: {complete}.{smaller}*\n"


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
        parts.append(f"| `{name}` | {source['paper']}, {source['place']} | {read} | {counts} |")
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
    """What ``superarm`` and each of its commands do, with their arguments and options."""
    from superarm.cli import main

    commands = list(_commands(main, ("superarm",)))
    rows = Counter(_describe_option(one) for _, command in commands for one in _options(command))
    shared = {row for row, n in rows.items() if n > 2}
    parts = ["## Options of several commands\n", HEAD, *sorted(shared), ""]
    return "\n".join([*parts, *(_describe_command(path, command, shared) for path, command in commands)])


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _commands(command.commands[name], (*path, name))


def _options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden]


def _describe_command(path: tuple[str, ...], command: click.Command, shared: set[str]) -> str:
    """Not click's own text: its layout depends on the version of click. Shared options by their names alone."""
    named = [_argument(one) for one in command.params if isinstance(one, click.Argument)]
    parts = [f"## `{' '.join([*path, *named])}`\n", inspect.cleandoc(command.help or "").replace("\b\n", "") + "\n"]
    rows = {_describe_option(one): one for one in _options(command)}
    own = [row for row in rows if row not in shared]
    parts += [HEAD, *own, ""] if own else []
    others = [f"`{one.opts[0]}`" for row, one in rows.items() if row in shared]
    parts += [f"{'Also' if own else 'Options:'} {', '.join(others)}.\n"] if others else []
    return "\n".join(parts)


def _argument(argument: click.Argument) -> str:
    name = (argument.metavar or str(argument.name).upper()).strip("[].")
    return (name if argument.required else f"[{name}]") + ("…" if argument.nargs == -1 else "")


def _describe_option(option: click.Option) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    kind = option.type
    value = (
        " or ".join(kind.choices) if isinstance(kind, click.Choice) else option.metavar or kind.name.split()[0].upper()
    )
    said = (option.help or "").replace("|", "\\|").replace("<", "\\<")
    plain = isinstance(option.default, str | int | float) and option.default != ""
    shown = plain and not option.is_flag and option.show_default is not False
    default = f" Default: `{option.default}`." if shown else ""
    return f"| `{names}{'' if option.is_flag or option.count else f' {value}'}` | {said}{default} |"


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

"""The commands for logs. Heavy imports are inside the functions, so that ``--help`` answers at once."""

from pathlib import Path
from typing import Any, NamedTuple

import click

from superarm.core.errors import InvalidArgument


class Candidate(NamedTuple):
    """A policy by its name, with settings: numbers of the policy, ``window`` or ``half_life``, and ``explore``."""

    name: str
    settings: dict[str, float]

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{name}={value:g}" for name, value in self.settings.items())])

    def split(self) -> tuple[dict[str, float], dict[str, int], float]:
        """The parameters of the policy, ``window`` or ``half_life`` if given, and the exploration share."""
        own, memory = dict(self.settings), dict[str, int]()
        for name in ("window", "half_life"):
            if name in own:
                rounds = own.pop(name)
                if rounds != int(rounds) or rounds < 1:
                    raise InvalidArgument(name, f"{rounds:g}", "give a number of rounds, such as 1000")
                memory[name] = int(rounds)
        if len(memory) > 1:
            raise InvalidArgument("half_life", "given beside window", "give one of the two")
        return own, memory, own.pop("explore", 0.0)


def parse_candidate(text: str) -> Candidate:
    """Read a candidate: the name of a policy, and settings after it, separated by spaces or commas.

    >>> parse_candidate("kl_ucb rho=2, window=500 explore=0.1")
    Candidate(name='kl_ucb', settings={'rho': 2.0, 'window': 500.0, 'explore': 0.1})
    >>> str(parse_candidate("kl_ucb rho=2"))
    'kl_ucb rho=2'
    """
    words = text.replace(",", " ").split()
    if not words:
        raise InvalidArgument("policy", "no name", "give a policy, such as kl_ucb rho=2")
    settings: dict[str, float] = {}
    for word in words[1:]:
        name, _, value = word.partition("=")
        try:
            settings[name] = float(value)
        except ValueError:
            wrong = f"{word!r} is not of the form name=number"
            raise InvalidArgument("settings", wrong, "write e.g. kl_ucb rho=2 window=500") from None
    return Candidate(words[0], settings)


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="A policy by its name, with settings if any ('kl_moss', 'kl_ucb rho=2 explore=0.1'), which learns from the "
    "log; or baseline, the logged slates. Repeatable.",
)
@click.option("--slate", "slates", multiple=True, help="Arms of one slate, separated by commas. Repeatable.")
@click.option("--against", default="baseline", show_default=True, help="What to compare with: baseline, or a slate.")
@click.option("--reward", default=None, help="What a slate is worth, if the file does not say: coverage, linear, …")
@click.option("--k", type=click.IntRange(1), default=None, help="The size of slates; by default that of the log.")
@click.option("--problem", default=None, help="The problem to read, if the file has several.")
@click.option("--method", default=None, help="The estimator; by default the one that suits the log.")
@click.option("--delta", type=click.FloatRange(0.0, 1.0, True, True), default=0.05, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Also write a page with pictures, one HTML file.")
def evaluate(log: Path, policies: tuple[str, ...], slates: tuple[str, ...], **options: Any) -> None:
    """Estimate from LOG what slates and policies are worth, and which slate to ship.

    LOG is a .parquet, .csv or .jsonl file, such as superarm export writes. See docs/guides/offline.md.
    """
    from superarm.offline.log import Log

    described = {"reward": _reward(options["reward"]), "k": options["k"], "name": options["problem"]}
    read = Log.read(log, **{name: value for name, value in described.items() if value is not None})
    targets = {name: _policy(name) for name in policies} | {slate: _slate(slate) for slate in slates}
    targets = targets or {"baseline": "logged", "follow_the_leader": _policy("follow_the_leader")}
    against = _policy(options["against"]) if options["against"] == "baseline" else _slate(options["against"])
    found = read.compare(targets, against, options["method"], options["delta"])
    click.echo(f"{read.check()}\n\n{found}\n\nto ship: {read.best(delta=options['delta'])}")
    for name in found:
        for text in found[name].warnings:
            click.echo(f"warning, {name}: {text}", err=True)
    if options["out"] is not None:
        click.echo(f"page: {found.report(options['out'])}")


def _policy(text: str) -> Any:
    """A policy of the catalogue with its settings, or the slates of the log."""
    from superarm.agent.agent import find_policy
    from superarm.offline.estimators.targets import PolicyTarget
    from superarm.policies.forgetting import discounted, sliding_window

    candidate = parse_candidate(text)
    name = candidate.name
    if name in ("baseline", "logged"):
        return "logged"
    parameters, memory, explore = candidate.split()
    made: Any = find_policy(name, parameters)
    if "window" in memory:
        made = sliding_window(made, memory["window"], min(16, memory["window"]))
    elif "half_life" in memory:
        made = discounted(made, memory["half_life"])
    return PolicyTarget(made, explore) if explore else made


def _slate(text: str) -> list[str]:
    return [arm.strip() for arm in text.split(",")]


def _reward(name: str | None) -> Any:
    """A reward by its name, with its defaults."""
    from superarm import rewards

    made = {"coverage": rewards.Coverage, "linear": rewards.Linear, "logistic": rewards.Logistic}
    if name is None:
        return None
    if name not in made:
        raise InvalidArgument("reward", f"unknown {name!r}", f"give {', '.join(made)}, or use Python for others")
    return made[name]()

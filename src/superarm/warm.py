"""``superarm warm``: compiles ahead, for images, clusters and CI. Heavy imports are inside the functions."""

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import click

from superarm.experiments.commands import IMPORT

SIZES = ((20, 10, 3), (100, 50, 10))
"""Arms, items and arms per batch of the problems that are compiled for: small and large ones have other kernels."""

Job = Callable[[], None]


@click.command()
@click.argument("spec", required=False)
@click.option(
    "--policy", "policies", multiple=True, help="A policy of the catalogue, such as kl_ucb; several are fine."
)
@click.option("--reward", "rewards", multiple=True, help="A reward, such as Coverage (the default); several are fine.")
@click.option(
    "--service", is_flag=True, help="Compile what the service runs, for kl_ucb unless --policy says otherwise."
)
@click.option("--workers", type=click.IntRange(1), help="How many processes compile at once; all cores by default.")
@IMPORT
def warm(
    spec: str | None,
    policies: tuple[str, ...],
    rewards: tuple[str, ...],
    service: bool,
    workers: int | None,
    imports: tuple[str, ...],
) -> None:
    """Compile ahead, so that nobody waits for it later.

    SPEC is an experiment, as for superarm run: everything that it simulates is compiled. With --policy and --reward,
    what Agent and simulate run on any k arms of a dense problem; with --service, what the service runs on it. Machine
    code is kept where NUMBA_CACHE_DIR says, or in the user's cache directory.
    """
    from superarm._cache import cache_directory

    if spec and (policies or rewards or service):
        raise click.UsageError("give SPEC, or --policy, --reward and --service")
    if not spec and not policies and not service:
        raise click.UsageError("give SPEC, --policy or --service")
    if spec:
        jobs = dict(_jobs_of_experiment(spec, imports))
    else:
        jobs = dict(_jobs_of_catalogue(policies or ("kl_ucb",), rewards or ("Coverage",), service))
    _perform(jobs, workers or os.cpu_count() or 1)
    click.echo(f"machine code is kept in {cache_directory()}")


def _perform(jobs: dict[str, Job], workers: int) -> None:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    if min(workers, len(jobs)) == 1:
        for name, job in jobs.items():
            job()
            click.echo(f"compiled: {name}")
        return
    with ProcessPoolExecutor(min(workers, len(jobs)), get_context("spawn")) as pool:
        futures = {name: pool.submit(job) for name, job in jobs.items()}
        for name, future in futures.items():
            future.result()
            click.echo(f"compiled: {name}")


def _jobs_of_experiment(spec: str, imports: tuple[str, ...]) -> Iterator[tuple[str, Job]]:
    """One job per composition of the experiment, by the policy and the instance that it comes first in."""
    from superarm.experiments.execution.tasks import compile_signature
    from superarm.experiments.spec.shipped import find_experiment

    known = set()
    for cell in find_experiment(spec, imports).cells():
        fitted = cell.policy.fit(cell.instance.problem)
        parts = (cell.instance.problem, cell.instance.environment, fitted)
        signature = tuple(compile_signature(part) for part in parts)
        if signature not in known:
            known.add(signature)
            yield cell.label, functools.partial(_simulate, cell.instance, cell.policy)


def _jobs_of_catalogue(policies: tuple[str, ...], rewards: tuple[str, ...], service: bool) -> Iterator[tuple[str, Job]]:
    from superarm.experiments.spec.resolve import check_choice, find_policies, resolve_component

    catalogue = find_policies()
    for policy_name in policies:
        maker = catalogue[check_choice(policy_name, catalogue, ("--policy",))]
        for reward_name in rewards:
            numbers = _required_numbers(reward_name)
            reward = resolve_component("reward", {"name": reward_name, **numbers}, ("--reward",))
            for size in SIZES:
                name = f"{policy_name} × {reward_name} on {size[0]} arms"
                if service:
                    snake = re.sub("(?<!^)(?=[A-Z])", "_", reward_name).lower()
                    yield name, functools.partial(_serve, policy_name, snake, numbers, size)
                else:
                    yield name, functools.partial(_ask_and_simulate, maker(), reward, size)


def _required_numbers(reward: str) -> dict[str, float]:
    """A number for each parameter of a reward without a default; machine code does not depend on which."""
    from superarm import rewards

    if reward not in rewards.__all__:
        return {}
    parameters = inspect.signature(getattr(rewards, reward)).parameters.values()
    return {p.name: 1.0 for p in parameters if p.default is p.empty and p.annotation in (float, "float")}


def _simulate(instance: Any, policy: Any) -> None:
    from superarm.simulation import simulate

    simulate(instance, {"policy": policy}, horizon=1, replications=1, progress=False)


def _ask_and_simulate(policy: Any, reward: Any, size: tuple[int, int, int]) -> None:
    import numpy as np

    from superarm.actions import Subsets
    from superarm.agent import Agent
    from superarm.environments import Bernoulli
    from superarm.problem import Problem
    from superarm.simulation import Instance

    n_arms, n_items, k = size
    problem = Problem(n_arms, n_items, reward, Subsets(k))
    agent = Agent(problem, policy, seed=0)
    decision = agent.ask()
    agent.tell(decision, np.ones((len(decision.action), n_items)))
    _simulate(Instance(problem, Bernoulli(np.full((n_arms, n_items), 0.5))), policy)


def _serve(policy: str, reward: str, numbers: dict[str, float], size: tuple[int, int, int]) -> None:
    import msgspec

    from superarm.service.domain.compilation import compile_kernels
    from superarm.service.domain.events import Created
    from superarm.service.domain.spec import ProblemSpec

    n_arms, n_items, k = size
    described = {
        "arms": [f"arm {j}" for j in range(n_arms)],
        "items": [f"item {i}" for i in range(n_items)],
        "reward": {"name": reward, "parameters": numbers},
        "k": k,
        "settings": {"policy": {"name": policy}},
    }
    compile_kernels(Created(0, msgspec.convert(described, ProblemSpec), "00"))

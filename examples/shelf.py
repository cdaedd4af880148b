"""A shelf for many tastes: five films of a hundred, so that as many people as possible find one they like.

    python examples/shelf.py            # MovieLens-100k if it was fetched, otherwise simulated people
    python examples/shelf.py --fetch    # MovieLens-100k, from the wheel of the package recbole (5 MB)

A log of random shelves, shown to one half of the people, becomes items (tastes); the other half judges. Then an agent
learns the same while it decides. Prints what each shelf claims and what it does, and draws shelf.png. If the package
vowpalwabbit is installed, its conditional contextual bandit (CCB) learns beside it.
"""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import superarm as sa
from superarm.data.files import cache_directory
from superarm.data.readers import People, read_movielens_100k
from superarm.simulation.plots import COLOURS, new_figure

K, SHELVES, VISITS = 5, 20_000, 4_000
RUNS = 8


def fetched(fetch: bool) -> Path | None:
    """The wheel with the data, if it is there or to be fetched."""
    folder = cache_directory()
    if fetch and not list(folder.glob("recbole-*.whl")):
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "recbole"]
        subprocess.run(words, check=True)
    return next(iter(folder.glob("recbole-*.whl")), None)


def simulated(seed: int = 0, people: int = 1000, films: int = 100) -> People:
    """People of four tastes of different sizes; a film belongs to one or two genres, which hint at the tastes."""
    rng = np.random.default_rng(seed)
    taste = rng.choice(4, people, p=[0.5, 0.25, 0.15, 0.1])
    home = rng.integers(0, 4, films)
    likes = rng.beta(1.2, 8.0, (4, films)) + np.where(home == np.arange(4)[:, None], rng.beta(2.0, 4.0, films), 0.0)
    liked = rng.random((people, films)) < np.clip(likes[taste] * rng.gamma(4.0, 0.25, (people, 1)), 0.0, 0.95)
    genres = np.zeros((films, 6), bool)
    genres[np.arange(films), np.where(rng.random(films) < 0.7, home, rng.integers(0, 6, films))] = True
    genres[np.arange(films), rng.integers(0, 6, films)] = True
    names = tuple(f"film {n + 1}" for n in range(films))
    return People(liked.astype(float), genres, names, tuple(f"genre {n + 1}" for n in range(6)))


def served(liked: np.ndarray, shelf: list[int]) -> float:
    """The share of people who like at least one film of the shelf."""
    return float(liked[:, shelf].max(axis=1).mean())


def mmr(rates: np.ndarray, genres: np.ndarray, balance: float = 0.5) -> list[int]:
    """Maximal marginal relevance: rates, less the likeness to what is on the shelf already."""
    like = (genres @ genres.T.astype(float)) / np.maximum((genres[:, None] | genres[None]).sum(2), 1)
    shelf: list[int] = []
    for _ in range(K):
        near = like[:, shelf].max(axis=1) if shelf else np.zeros(len(rates))
        score = balance * rates / rates.max() - (1.0 - balance) * near
        score[shelf] = -np.inf
        shelf.append(int(score.argmax()))
    return shelf


def by_genre(liked: np.ndarray, genres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """IA-Select's items: people by the genre that they like most; what each group likes (films, groups), and shares."""
    group = (liked @ genres).argmax(axis=1)
    shares = np.bincount(group, minlength=genres.shape[1]) / len(group)
    return np.array(
        [liked[group == g].mean(axis=0) if (group == g).any() else liked.mean(axis=0) for g in range(len(shares))]
    ).T, shares


def shelves(people: People, seed: int = 0) -> dict[str, tuple[float, float]]:
    """What every way to fill the shelf claims, and what the other half of the people say."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(people.liked))
    inside, outside = (people.liked[part] for part in np.array_split(order, 2))
    shown = np.argsort(rng.random((SHELVES, inside.shape[1])), axis=1)[:, :K]
    answers = inside[rng.integers(0, len(inside), SHELVES)[:, None], shown]
    problem = sa.Problem(inside.shape[1], 1, sa.Coverage(), sa.Subsets(K))
    log = sa.offline.Log.from_arrays(problem, shown, answers, arms=people.films)
    items = sa.items.learn(log)
    print(items.table())
    rates, (p, shares) = items.rates, by_genre(inside, people.genres)
    genre_problem = sa.Problem(len(p), len(shares), sa.Coverage(), sa.Subsets(K), shares)
    known = sa.oracles.solve(genre_problem, p, sa.oracles.Greedy()).tolist()  # Coverage at known p is IA-Select
    best: list[int] = []
    for _ in range(K):
        best.append(max(range(inside.shape[1]), key=lambda film: served(inside, [*best, film])))
    top = np.argsort(-rates)[:K].tolist()
    found = {
        "top sellers": (top, 1.0 - float(np.prod(1.0 - rates[top]))),
        "MMR on genres": (mmr(rates, people.genres), float("nan")),
        "IA-Select on genres": (known, float(genre_problem.value(p, known))),
        "learnt items": (items.slate(K).tolist(), items.worth(items.slate(K))),
        "everybody known": (best, served(inside, best)),
    }
    return {name: (claim, served(outside, shelf)) for name, (shelf, claim) in found.items()}


class Tastes:
    """Learns tastes while it decides."""

    def __init__(self, films: int, seed: int) -> None:
        self.agent = sa.items.ItemAgent(films, sa.Subsets(K), seed=seed)

    def ask(self) -> Any:
        self.decision = self.agent.ask()
        return self.decision.action

    def tell(self, liked: np.ndarray) -> None:
        self.agent.tell(self.decision, liked)


class TopSellers(Tastes):
    """Looks for the films that are liked most."""

    def __init__(self, films: int, seed: int) -> None:
        self.agent = sa.Agent(sa.Problem(films, 1, sa.Linear(), sa.Subsets(K)), sa.pooled_thompson(), seed=seed)

    def tell(self, liked: np.ndarray) -> None:
        self.agent.tell(self.decision, liked[:, None])


class VowpalWabbit:
    """Vowpal Wabbit's CCB with its default exploration: a slot of the shelf after the other, each film with its id."""

    def __init__(self, films: int, seed: int) -> None:
        from vowpalwabbit import Workspace

        self.model = Workspace(f"--ccb_explore_adf --quiet --random_seed {seed}")
        self.head = ["ccb shared |", *(f"ccb action |f {film}" for film in range(films))]

    def ask(self) -> Any:
        slots = self.model.predict("\n".join([*self.head, *["ccb slot |"] * K]))
        self.chosen = [slot[0] for slot in slots]
        return np.array([film for film, _ in self.chosen])

    def tell(self, liked: np.ndarray) -> None:
        told = [f"ccb slot {film}:{-like:g}:{p} |" for (film, p), like in zip(self.chosen, liked, strict=True)]
        self.model.learn("\n".join([*self.head, *told]))


def online(people: People, seed: int, make: Any) -> np.ndarray:
    """Whether each visitor found something, from nothing."""
    rng = np.random.default_rng(seed)
    own = people.liked[:, rng.permutation(people.liked.shape[1])]
    agent, got = make(own.shape[1], seed), np.zeros(VISITS)
    for visit in range(VISITS):
        liked = own[rng.integers(len(own))][agent.ask()]
        got[visit] = liked.max()
        agent.tell(liked)
    return got


def standard_error(runs: np.ndarray) -> np.ndarray:
    """Of the mean over runs."""
    return np.asarray(runs.std(axis=0) / max(1, len(runs) - 1) ** 0.5)


def draw(found: dict[str, tuple[float, float]], runs: dict[str, np.ndarray], path: Path) -> None:
    """Left: claimed and realised. Right: the share served while it decides, by 500 visits, ± two standard errors."""
    figure = new_figure(figsize=(10.0, 3.9))
    left, right = figure.subplots(1, 2)
    place = np.arange(len(found))
    claim, real = (100 * np.array(part) for part in zip(*found.values(), strict=True))
    left.barh(place + 0.2, claim, 0.36, color=COLOURS[6], alpha=0.5, label="claimed")
    left.barh(place - 0.2, real, 0.36, color=COLOURS[0], label="realised")
    left.set_yticks(place, list(found))
    left.set_xlim(0, 100)
    left.set_xlabel("people who find a film they like, %")
    left.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncol=2)
    for (name, got), style, colour in zip(runs.items(), ("-", "--", ":"), COLOURS, strict=False):
        each = 100 * got.reshape(len(got), -1, 500).mean(axis=2)
        visits, mean, reach = 500 * (1 + np.arange(each.shape[1])), each.mean(0), 2.0 * standard_error(each)
        right.plot(visits, mean, style, color=colour, marker="o", markersize=3, label=name)
        right.fill_between(visits, mean - reach, mean + reach, color=colour, alpha=0.15, linewidth=0)
    right.set_xlabel("visits, from nothing")
    right.set_ylabel("visitors served, %")
    right.legend(
        frameon=False, loc="lower left", bbox_to_anchor=(-0.1, 1.0), ncol=3, columnspacing=1.0, handlelength=1.5
    )
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", action="store_true", help="download MovieLens-100k with pip")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of the agents")
    given = parser.parse_args()
    path = fetched(given.fetch)
    people = simulated() if path is None else read_movielens_100k(path)
    print("simulated people (--fetch takes MovieLens)" if path is None else "MovieLens-100k")
    found = shelves(people)
    print(f"{'shelf':<22}{'claimed':>9}{'realised':>10}")
    for name, (claim, real) in found.items():
        print(f"{name:<22}{'' if np.isnan(claim) else f'{100 * claim:.1f}%':>9}{100 * real:>9.1f}%")
    ways: dict[str, Any] = {"learnt items": Tastes, "top sellers": TopSellers}
    if importlib.util.find_spec("vowpalwabbit"):
        ways["Vowpal Wabbit CCB"] = VowpalWabbit
    runs = {name: np.array([online(people, n, way) for n in range(given.runs)]) for name, way in ways.items()}
    for name, got in runs.items():
        error = float(standard_error(got.mean(axis=1)))
        served_all = f"{100 * got.mean():.1f} ± {100 * error:.1f}% of {VISITS:,} visitors served"
        print(f"{name}, from nothing: {served_all}, {100 * got[:, -1000:].mean():.1f}% of the last 1,000")
    draw(found, runs, Path("shelf.png"))


if __name__ == "__main__":
    main()

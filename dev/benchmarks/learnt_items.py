"""What learnt items are worth on real people: ``python -m dev.benchmarks.learnt_items``.

Reads MovieLens-100k from the wheel of the package recbole, which pip downloads once into the directory of downloads;
nothing of it is stored in this repository. With ``--models FILE`` it also reads the outcomes of 25 coding models on 500
issues.
"""

import argparse
import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import superarm as sa
from superarm.data.files import cache_directory
from superarm.data.readers import read_movielens_100k
from superarm.items import ItemAgent, learn, need
from superarm.output.table import Measured, ResultTable

N_FILMS, K = 100, 5
PROBLEM = sa.Problem(N_FILMS, 1, sa.Coverage(), sa.Subsets(K))


def read_people() -> np.ndarray:
    """Who liked which of the 100 films that were rated most often, (people, films)."""
    found = list(cache_directory().glob("recbole-*.whl"))
    if not found:
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache_directory())]
        subprocess.run([*words, "recbole"], check=True)
        found = list(cache_directory().glob("recbole-*.whl"))
    return read_movielens_100k(found[0], N_FILMS).liked


def served(liked: np.ndarray, slate: Any) -> float:
    """The share of people who like at least one film of a slate."""
    return float(liked[:, np.asarray(slate)].max(axis=1).mean())


def best_slate(liked: np.ndarray) -> list[int]:
    """The greedy slate on the joint law."""
    slate: list[int] = []
    for _ in range(K):
        slate.append(max(range(N_FILMS), key=lambda film: served(liked, [*slate, film])))
    return slate


def from_log(liked: np.ndarray, visits: int, ids: bool, halvings: int) -> dict[str, Any]:
    """Learn from random slates to one half of the people, judge by the other half."""
    rows = []
    for seed in range(halvings):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(liked))
        inside, outside = liked[order[: len(liked) // 2]], liked[order[len(liked) // 2 :]]
        who = rng.integers(0, len(inside), visits)
        slates = np.argsort(rng.random((visits, N_FILMS)), axis=1)[:, :K]
        log = sa.offline.Log.from_arrays(PROBLEM, slates, inside[who[:, None], slates])
        items = learn(log, units=who if ids else None, seed=seed)
        slate, top = items.slate(K), np.argsort(-items.rates)[:K]
        real = served(outside, slate)
        rows.append([real, served(outside, top), served(outside, best_slate(inside)), abs(items.worth(slate) - real)])
    values = np.array(rows)
    mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(halvings)
    shown = dict(zip(("learnt items", "top 5", "joint law"), map(Measured, mean[:3], error[:3]), strict=True))
    return {
        "log": f"{visits:,} slates{', people known' if ids else ''}",
        **shown,
        "claim off by": float(round(mean[3], 3)),
    }


def play(liked: np.ndarray, visits: int, seed: int, learning: bool) -> np.ndarray:
    """Whether each visitor found a film, from nothing."""
    rng = np.random.default_rng(seed)
    own = liked[:, rng.permutation(N_FILMS)]
    agent: Any = ItemAgent(N_FILMS, sa.Subsets(K), seed=seed)
    if not learning:  # the same policy with one item, whose prior is fitted at the same times
        agent = ItemAgent(N_FILMS, sa.Subsets(K), seed=seed)
        agent.refit = lambda: one_class(agent)
    got = np.zeros(visits)
    for visit in range(visits):
        person = own[rng.integers(len(own))]
        decision = agent.ask()
        agent.tell(decision, person[decision.action])
        got[visit] = person[decision.action].max()
    return got


def one_class(agent: ItemAgent) -> None:
    """A refit that never finds more than one class."""
    from superarm.items.counts import to_rows
    from superarm.items.latent import learn_rows

    counts, agent.version = agent.counts, agent.version + 1
    counts.adopt(learn_rows(to_rows(list(counts.told.values()), N_FILMS), (1,)))
    counts.due = int(np.ceil(agent.growth * len(counts.told)))


def online(liked: np.ndarray, name: str, visits: int, runs: int) -> list[dict[str, Any]]:
    """Shares of visitors served, from nothing."""
    found = []
    for learning, label in ((True, "learnt items"), (False, "one item")):
        got = np.array([play(liked, visits, seed, learning) for seed in range(runs)])
        parts = {"first 1,000": got[:, :1000], f"all {visits:,}": got, "last fifth": got[:, -visits // 5 :]}
        means = {head: part.mean(axis=1) for head, part in parts.items()}
        cells = {head: Measured(m.mean(), m.std(ddof=1) / np.sqrt(runs)) for head, m in means.items()}
        found.append({"visitors": name, "agent": label, **cells})
    return found


def permuted(liked: np.ndarray, seed: int) -> np.ndarray:
    """The same films liked by the same numbers of people, at random: there is nothing to learn."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(column) for column in liked.T], axis=1)


def false_alarms(liked: np.ndarray, visits: int, times: int) -> float:
    """How often classes are found among permuted films."""
    alarms = 0
    for seed in range(times):
        rng, none = np.random.default_rng(seed), permuted(liked, seed)
        slates = np.argsort(rng.random((visits, N_FILMS)), axis=1)[:, :K]
        answers = none[rng.integers(0, len(none), visits)[:, None], slates]
        alarms += need(sa.offline.Log.from_arrays(PROBLEM, slates, answers), seed=seed).found
    return alarms / times


def coding_models(path: Path, tries: int, draws: int) -> tuple[float, float]:
    """Best three of 25 models, each issue tried by some: |claimed − realised| with learnt items and with one item."""
    models = json.loads(path.read_text())["models"]
    solved = np.array([[int(x) for x in model["resolved"]] for model in models]).T
    problem = sa.Problem(solved.shape[1], 1, sa.Coverage(), sa.Subsets(tries))
    differences = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        slates = np.argsort(rng.random(solved.shape), axis=1)[:, :tries]
        log = sa.offline.Log.from_arrays(problem, slates, np.take_along_axis(solved, slates, 1))
        for classes in ((1, 2, 3, 4, 6, 8), 1):
            items = learn(log, classes=classes, seed=seed)
            slate = items.slate(3)
            differences.append(abs(items.worth(slate) - served(solved, slate)))
    pairs = np.array(differences).reshape(-1, 2).mean(0)
    return float(pairs[0]), float(pairs[1])


def with_features(visits: int, draws: int) -> dict[str, Any]:
    """Simulated visitors of three tastes, of whom four numbers are known; shares of new visitors who are served."""
    rows, tastes = [], np.array([0.5, 0.3, 0.2])
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        home = rng.integers(0, 3, 40)
        p = rng.beta(1.2, 8.0, (40, 3)) + np.where(home[:, None] == np.arange(3), rng.beta(2.0, 4.0, 40)[:, None], 0.0)
        p, centre = np.clip(p, 0.0, 0.95), rng.standard_normal((3, 4))
        taste, new = rng.choice(3, visits, p=tastes), rng.choice(3, 2000, p=tastes)
        x, known = (centre[who] + rng.standard_normal((len(who), 4)) for who in (taste, new))
        slates = np.argsort(rng.random((visits, 40)), axis=1)[:, :K]
        problem = sa.Problem(40, 1, sa.Coverage(), sa.Subsets(K))
        log = sa.offline.Log.from_arrays(problem, slates, rng.random((visits, K)) < p[slates, taste[:, None]])
        plain, told = learn(log, seed=seed), learn(log, seed=seed, features=x)
        top, one = np.argsort(-plain.rates)[:K], plain.slate(K)
        own = [told.slate(K, told.posterior(features=row)) for row in known]
        best = [np.argsort(-p[:, c])[:K] for c in range(3)]
        shown = ([top] * 2000, [one] * 2000, own, [best[c] for c in new])
        rows.append([np.mean([1.0 - np.prod(1.0 - p[s, c]) for s, c in zip(part, new, strict=True)]) for part in shown])
    values = np.array(rows)
    mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(draws)
    names = ("top 5", "one slate for all", "by features", "tastes known")
    return {"log": f"{visits:,} slates", **dict(zip(names, map(Measured, mean, error), strict=True))}


def over_http(liked: np.ndarray, url: str, visits: int, runs: int) -> list[dict[str, Any]]:
    """Shares of visitors served by a running service, from nothing: with learnt items, units known, and one item."""
    service, found = sa.connect(url), []
    arms = [f"film {n}" for n in range(N_FILMS)]
    for label, items, known in (
        ("learnt", "learn", False),
        ("learnt, people known", "learn", True),
        ("one", None, False),
    ):
        got, claims = np.zeros((runs, visits)), []
        for seed in range(runs):
            rng, name = np.random.default_rng(seed), f"{label} {secrets.token_hex(4)}"
            own = liked[:, rng.permutation(N_FILMS)]
            agent = service.create(name, arms, items, K, seed=seed)
            for visit in range(visits):
                person = int(rng.integers(len(own)))
                decision = agent.ask(unit=f"person {person}" if known else None)
                agent.tell(decision, own[person][decision.action][:, None])
                got[seed, visit] = own[person][decision.action].max()
            claims.append(agent.learnt_items()["claimed"])
        parts = {"first 1,000": got[:, :1000], f"all {visits:,}": got, "last 1,000": got[:, -1000:]}
        means = {head: part.mean(axis=1) for head, part in parts.items()}
        error = np.sqrt(max(1, runs - 1))
        cells = {head: Measured(m.mean(), m.std() / error) for head, m in means.items()}
        found.append({"items": label, **cells, "claimed": round(float(np.mean(claims)), 3)})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--features", action="store_true", help="only simulated visitors with features")
    parser.add_argument("--service", metavar="URL", help="only a running service, 4,000 visitors in each run")
    given = parser.parse_args()
    if given.service:
        runs = over_http(read_people(), given.service, 4_000, given.runs)
        print(ResultTable(runs, "Share of visitors who find a film they like among five, over HTTP").to_markdown())
        return
    if given.features:
        tastes = [with_features(n, 8) for n in (500, 2_000, 8_000)]
        print(ResultTable(tastes, "Simulated visitors with features: share of them served").to_markdown())
        return
    people = read_people()
    rows = [from_log(people, n, ids, 20 if n < 5000 else 10) for n in (2_000, 20_000) for ids in (False, True)]
    logs = ResultTable(rows, "Share of the other half of the people who find a film they like among five")
    runs = online(people, "MovieLens", 10_000, given.runs) + online(
        permuted(people, 0), "permuted films", 3_000, given.runs
    )
    live = [{head.replace("all 3,000", "all 10,000"): cell for head, cell in row.items()} for row in runs]
    found = ResultTable(live, "From nothing, while deciding (permuted films: 3,000 visits in all)")
    alarms = (
        f"Groups found among permuted films: {100 * false_alarms(people, 3_000, 40):.0f} % of 40 logs of 3,000 slates."
    )
    tables = [f"{table.caption}:\n\n{table.to_markdown()}" for table in (logs, found)]
    text = "\n".join([*tables, alarms])
    if given.models:
        learnt, single = coding_models(given.models, 5, 12)
        text += "\n\nCoding models, five tries per issue, best three: |claimed − realised| "
        text += f"{learnt:.3f} with learnt items, {single:.3f} with one."
    print(text)


if __name__ == "__main__":
    main()

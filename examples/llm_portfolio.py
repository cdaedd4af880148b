"""Models under a budget: which language models to try on every issue, as a ladder or as a set, learnt in one pass.

    python examples/llm_portfolio.py            # recorded outcomes if they were fetched, otherwise simulated issues
    python examples/llm_portfolio.py --fetch    # 25 coding models on 500 issues, with costs (CC BY-NC 4.0, 4 MB)

An issue is solved if one of the models that ran solves it: a ladder tries them until one succeeds, a set runs at once.
Every model that runs costs money, and the mean cost of an issue is limited. Prints solved issues, dollars per issue
and, in brackets, per solved issue; draws the first two into llm-portfolio.png in the working directory.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import superarm as sa
from superarm.core.errors import SuperarmError
from superarm.data import fetch
from superarm.data.files import cache_directory
from superarm.simulation.plots import COLOURS, new_figure

SHA256 = "91bb31c7b8b6b0a8cf9d3210c9f40c45c8d7e00341f33fc81768d51f487914d2"
SHARES = (0.31, 0.18, 0.18, 0.14, 0.12, 0.07)
MODELS = (  # dollars per issue, and the probability of solving an issue of each of six classes, fitted to them
    (0.028, (0.85, 0.94, 0.01, 0.69, 0.26, 0.44)),
    (0.035, (0.91, 0.99, 0.00, 0.59, 0.14, 0.54)),
    (0.038, (0.51, 0.80, 0.00, 0.16, 0.04, 0.38)),
    (0.057, (0.29, 0.77, 0.01, 0.11, 0.07, 0.18)),
    (0.068, (0.04, 0.44, 0.01, 0.01, 0.03, 0.01)),
    (0.097, (0.86, 0.95, 0.01, 0.42, 0.08, 0.64)),
    (0.210, (0.70, 0.94, 0.00, 0.23, 0.09, 0.35)),
    (0.238, (0.85, 0.92, 0.02, 0.54, 0.16, 0.53)),
    (0.248, (0.83, 0.96, 0.02, 0.53, 0.18, 0.33)),
    (0.280, (0.95, 0.99, 0.00, 0.77, 0.26, 0.47)),
    (0.288, (0.80, 0.97, 0.00, 0.58, 0.10, 0.33)),
    (0.297, (0.85, 0.98, 0.00, 0.41, 0.10, 0.49)),
    (0.306, (0.94, 0.99, 0.01, 0.87, 0.25, 0.44)),
    (0.314, (0.18, 0.75, 0.00, 0.08, 0.09, 0.08)),
    (0.334, (0.88, 0.95, 0.00, 0.64, 0.20, 0.37)),
    (0.355, (0.21, 0.19, 0.00, 0.06, 0.03, 0.05)),
    (0.371, (0.96, 0.99, 0.00, 0.68, 0.23, 0.61)),
    (0.428, (0.92, 0.96, 0.04, 0.59, 0.18, 0.53)),
    (0.460, (0.98, 0.99, 0.05, 0.96, 0.46, 0.70)),
    (0.532, (0.71, 0.77, 0.00, 0.35, 0.05, 0.39)),
    (0.558, (0.96, 0.99, 0.02, 0.90, 0.42, 0.54)),
    (0.589, (0.97, 0.99, 0.00, 0.77, 0.29, 0.45)),
    (0.676, (0.80, 0.87, 0.02, 0.59, 0.15, 0.43)),
    (0.721, (0.99, 1.00, 0.08, 0.93, 0.48, 0.60)),
    (1.131, (0.98, 0.99, 0.00, 0.82, 0.28, 0.54)),
)
COUNTED_ONCE = sa.Coverage()
BUDGETS = (0.04, 0.07, 0.15, 0.35, 0.7)
SHARPNESS = {"set": 8.0, "one": 32.0}  # 2, the default, compares near-equal models for longer than 500 issues pay for


def recorded(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Which model solved which issue, and at what cost: (issues, models) each."""
    boards = {board["name"]: board["results"] for board in json.loads(path.read_text())["leaderboards"]}
    models = [model["per_instance_details"] for model in boards["bash-only"] if model.get("per_instance_details")]
    issues = sorted(set.intersection(*map(set, models)))
    parts = ([[model[issue][key] for model in models] for issue in issues] for key in ("resolved", "cost"))
    solved, cost = (np.array(part, float) for part in parts)
    return solved, cost


def simulated(seed: int = 0, issues: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """The same from six classes of issues, with costs that vary as much as those of the recorded runs."""
    rng, spread = np.random.default_rng(seed), 0.94
    kind = rng.choice(len(SHARES), issues, p=SHARES)
    mean, p = np.array([cost for cost, _ in MODELS]), np.array([rates for _, rates in MODELS])
    cost = mean * np.exp(rng.normal(-(spread**2) / 2, spread, (issues, len(MODELS))))
    return (rng.random(cost.shape) < p.T[kind]).astype(float), cost


def run(
    solved: np.ndarray,
    cost: np.ndarray,
    budget: float,
    seed: int,
    policy: str = "set",
    reward: sa.Reward = COUNTED_ONCE,
) -> tuple[float, float]:
    """One pass over the issues in random order, from nothing: the share that was solved, and dollars per issue."""
    price = cost.mean(axis=0)  # the price list: what a model costs on average is known
    if policy == "cheapest":
        order = np.argsort(price)
        chosen = order[np.cumsum(price[order]) <= budget]
        return solved[:, chosen].max(axis=1).mean(), cost[:, chosen].sum(axis=1).mean()
    models = np.flatnonzero(price <= budget)
    actions = sa.Subsets(1) if policy == "one" else sa.Knapsack(price[models], budget)
    problem = sa.Problem(n_arms=len(models), n_items=1, reward=reward, actions=actions)
    agent = sa.Agent(problem, sa.pooled_thompson(sharpness=SHARPNESS[policy]), seed=seed)
    wins = dollars = 0.0
    for issue in np.random.default_rng(seed).permutation(len(solved)):
        decision = agent.ask()
        chosen = models[decision.action]
        agent.tell(decision, solved[issue, chosen][:, None])  # what each model did
        wins += solved[issue, chosen].max()
        dollars += cost[issue, chosen].sum()
    return wins / len(solved), dollars / len(solved)


def learner(price: np.ndarray, most: float, spend: float, seed: int, at_once: bool = False) -> sa.Agent:
    """An agent that keeps a mean spend, of ladders or of sets, and learns what calls of at most ``most`` cost."""
    problem = sa.Problem(len(price), 2, sa.Coverage(), sa.Subsets(len(price)), weights=[1.0, 0.0])
    policy = sa.policies.spend_set if at_once else sa.policies.ladder
    return sa.Agent(problem, policy(price, scale=most, spend=spend), seed=seed)


def spend_sets(
    solved: np.ndarray, cost: np.ndarray, spend: float, order: np.ndarray, seed: int, price: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sets that keep a mean spend: of each issue whether it was solved, and the dollars."""
    given = cost.mean(axis=0) if price is None else price
    most, rows = max(cost.max(), given.max()), []
    agent = learner(given, most, spend, seed, at_once=True)
    for issue in order:
        decision = agent.ask()
        won, paid = solved[issue, decision.action], cost[issue, decision.action]
        agent.tell(decision, np.stack([won, 1.0 - paid / most], axis=1))
        rows.append((won.max(), paid.sum()))
    share, dollars = np.array(rows).T
    return share, dollars


def ladder(
    solved: np.ndarray, cost: np.ndarray, spend: float, order: np.ndarray, seed: int, judge: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """A ladder that keeps a mean spend: of each issue whether it was solved, the dollars, and what the judge says.

    Costs are told as the share of the dearest call that a call saved: so the agent learns what calls really cost. The
    last model that ran delivers its answer. A judge (issues, models) may pass answers that are wrong.
    """
    price, most, passed = cost.mean(axis=0), cost.max(), solved if judge is None else judge
    agent = learner(price, most, spend, seed)
    rows = []
    for issue in order:
        decision = agent.ask()  # decision.action: try them in this order
        chosen = decision.action
        tried = np.cumsum(passed[issue, chosen]) - passed[issue, chosen] == 0
        outcome = np.stack([passed[issue, chosen], 1.0 - cost[issue, chosen] / most], axis=1)
        agent.tell(decision, outcome, seen=np.stack([tried, tried], axis=1))
        last = chosen[tried][-1]
        rows.append((solved[issue, last], cost[issue, chosen][tried].sum(), passed[issue, last]))
    return tuple(np.array(rows).T)


def compare(
    solved: np.ndarray, cost: np.ndarray, orders: int, reward: sa.Reward
) -> dict[str, list[tuple[float, float]]]:
    """For each way to choose models: the mean solved share and dollars at every budget."""
    ways = {"superarm: sets": "set", "bandit on single models": "one"}
    ways |= {"cheapest that fit": "cheapest"}  # without learning
    print(f"superarm: ladder (1 of {len(ways) + 1})", file=sys.stderr)
    rng = [np.random.default_rng(seed) for seed in range(orders)]
    mean = [
        [np.mean(ladder(solved, cost, b, one.permutation(len(solved)), n), axis=1)[:2] for n, one in enumerate(rng)]
        for b in BUDGETS
    ]
    found = {"superarm: ladder": [tuple(np.mean(each, axis=0)) for each in mean]}
    for name, way in ways.items():
        print(f"{name} ({len(found) + 1} of {len(ways) + 1})", file=sys.stderr)
        each = ([run(solved, cost, b, s, way, reward) for s in range(orders)] for b in BUDGETS)
        found[name] = [tuple(np.mean(one, axis=0)) for one in each]
    return found


def draw(found: dict[str, list[tuple[float, float]]], solved: np.ndarray, cost: np.ndarray, path: Path) -> None:
    """Dollars per issue against solved issues."""
    figure = new_figure(figsize=(6.5, 4.0))
    axes = figure.add_subplot()
    axes.plot(
        cost.mean(0), 100 * solved.mean(0), "o", color=COLOURS[6], markersize=4, label="each model alone, in hindsight"
    )
    for (name, points), style, colour in zip(found.items(), ("o-", "s--", "^:", "x-."), COLOURS[:4], strict=True):
        share, dollars = np.array(points).T
        axes.plot(dollars, 100 * share, style, color=colour, label=name, linewidth=1.8)
    axes.set_xscale("log")
    axes.set_xticks([0.03, 0.1, 0.3, 1.0], ["$0.03", "$0.10", "$0.30", "$1.00"])
    axes.set_xlabel("dollars per issue")
    axes.set_ylabel("issues solved, %")
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", ncol=2, fontsize=9)
    figure.savefig(path, dpi=150)


def cell(share: float, dollars: float) -> str:
    """The share of solved issues, dollars per issue, and in brackets dollars per solved issue."""
    return f"{100 * share:.1f} % at ${dollars:.3f} (${dollars / share:.3f})" if share else "0.0 %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", action="store_true", help="download the recorded outcomes (CC BY-NC 4.0)")
    parser.add_argument("--orders", type=int, default=10, help="random orders of the issues")
    parser.add_argument(
        "--linear", action="store_true", help="count every model that solves an issue, not the issue once"
    )
    given = parser.parse_args()
    path = cache_directory() / "coding-models.json"
    if given.fetch:
        try:
            fetch("coding-models", SHA256)
        except SuperarmError as error:
            parser.error(f"{error}, as {path.name}; SUPERARM_DATA names another directory")
    solved, cost = recorded(path) if path.exists() else simulated()
    print("recorded outcomes" if path.exists() else "simulated issues (--fetch downloads recorded ones)")
    found = compare(solved, cost, given.orders, sa.Linear() if given.linear else COUNTED_ONCE)
    print(f"{'budget':>8}  " + "  ".join(f"{name:>26}" for name in found))
    for n, budget in enumerate(BUDGETS):
        print(f"{'$' + format(budget, '.2f'):>8}  " + "  ".join(f"{cell(*of[n]):>26}" for of in found.values()))
    best = int(solved.mean(0).argmax())
    print(f"best model in hindsight: {cell(solved[:, best].mean(), cost[:, best].mean())}")
    draw(found, solved, cost, Path("llm-portfolio.png"))


if __name__ == "__main__":
    main()

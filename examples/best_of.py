"""Several models answer every prompt, a judge marks each answer, and the best one is delivered: which models?

python examples/best_of.py            # prints what was delivered, and writes best-of.png

Twelve simulated models, three answers per prompt, marks from 0 to 10. Compared: sets for the best mark, the three
models with the highest mean marks, and random sets.
"""

import numpy as np

import superarm as sa
from superarm.simulation.plots import COLOURS, new_figure

MODELS = {  # the mean of a model's marks, and their deviation
    **{f"steady-{n}": (mean, 0.4) for n, mean in enumerate((6.2, 6.1, 6.0, 5.9, 5.8, 5.6))},
    **{f"bold-{n}": (mean, 2.5) for n, mean in enumerate((4.8, 4.5, 4.2))},
    **{f"middling-{n}": (mean, 1.2) for n, mean in enumerate((5.4, 5.2, 5.0))},
}
SCALE = sa.Thresholds(0, 10)
PROMPTS, ORDERS = 400, 20


def marks(seed: int) -> np.ndarray:
    """The marks of all models on all prompts, (PROMPTS, n_models)."""
    mean, deviation = np.array(list(MODELS.values())).T
    drawn = mean + deviation * np.random.default_rng(seed).standard_normal((PROMPTS, len(mean)))
    return np.clip(drawn, 0.0, 10.0)


def run(method: str, seed: int) -> np.ndarray:
    """The best mark of every prompt, learnt from nothing."""
    table, n = marks(seed), len(MODELS)
    scored = sa.Problem(n_arms=n, items=SCALE, actions=sa.Subsets(3))
    plain = sa.Problem(n_arms=n, n_items=1, reward=sa.Linear(), actions=sa.Subsets(3))
    agents = {
        "sets for the best mark": lambda: sa.Agent(scored, seed=seed),
        "three highest means": lambda: sa.Agent(plain, seed=seed),
        "random sets": lambda: sa.Agent(scored, sa.uniform(), seed=seed),
    }
    agent, delivered = agents[method](), []
    for own in table:
        decision = agent.ask()
        told = own[decision.action]
        if agent.problem is scored:
            agent.tell(decision, scores=told)
        else:
            agent.tell(decision, told[:, None] / 10.0)
        delivered.append(told.max())
    return np.array(delivered)


METHODS = ("sets for the best mark", "three highest means", "random sets")


def main() -> None:
    """Print the mean mark of what each method delivered, and draw it over prompts."""
    figure = new_figure(figsize=(7.0, 3.4))
    axes = figure.subplots()
    for method, style, colour in zip(METHODS, ("-", "--", ":"), COLOURS, strict=False):
        delivered = np.mean([run(method, seed) for seed in range(ORDERS)], axis=0)
        axes.plot(np.arange(1, PROMPTS, 20), delivered.reshape(-1, 20).mean(1), style, color=colour, label=method)
        print(f"{method}: {delivered.mean():.2f} on average, {delivered[-100:].mean():.2f} on the last 100 prompts")
    axes.set_xlabel("prompts, from nothing")
    axes.set_ylabel("mark of the delivered answer")
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncol=3)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig("best-of.png", dpi=150)


if __name__ == "__main__":
    main()

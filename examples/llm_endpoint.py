"""The same against any OpenAI-compatible endpoint: choose models for every prompt, check the answers, learn.

    python examples/llm_endpoint.py URL MODEL=DOLLARS ... --spend 0.05 --state agent.json < prompts.jsonl
    python examples/llm_endpoint.py URL MODEL=DOLLARS ... --budget 0.05 < prompts.jsonl
    python examples/llm_endpoint.py URL MODEL=DOLLARS ... --ladder 2.00 --state agent.json < prompts.jsonl

A line of the input is {"prompt": "...", "expect": "..."}: an answer that contains ``expect`` solves it. Put your own
check (tests that pass, a judge) in its place. OPENAI_API_KEY is sent if it is set.

DOLLARS is what a call costs on average: what the agent chooses by. MODEL=DOLLARS/IN/OUT gives dollars per million
tokens besides; then a call is billed by the ``usage`` in its answer. A call that fails is not billed, and says nothing
about the model: it counts as not seen. With ``--spend DOLLARS`` models run one after the other until one succeeds, and
a prompt costs DOLLARS in the mean, also where the prices are wrong; with ``--ladder WORTH`` they do as long as it is
worth it, where WORTH is what a solved prompt is worth to you in dollars. With ``--budget DOLLARS`` a set of models runs
at once. With ``--state`` what was learnt outlives the program, also when models, prices or limits change.
"""

import argparse
import json
import os
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import superarm as sa


class Price(NamedTuple):
    """Dollars per call, and per million tokens of prompt and answer; None if these are not known."""

    call: float
    tokens: tuple[float, float] | None = None

    def bill(self, usage: dict) -> float:
        """What a call costs that used so many tokens."""
        if self.tokens is None or "completion_tokens" not in usage:
            return self.call
        return (usage.get("prompt_tokens", 0) * self.tokens[0] + usage["completion_tokens"] * self.tokens[1]) / 1e6


def read_price(text: str) -> tuple[str, Price]:
    """The name and the price of MODEL=DOLLARS or MODEL=DOLLARS/IN/OUT."""
    name, _, price = text.rpartition("=")
    try:
        call, *tokens = map(float, price.split("/"))
        if not name or call <= 0.0 or len(tokens) not in (0, 2):
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} has no price: give MODEL=DOLLARS or MODEL=DOLLARS/IN/OUT") from None
    return name, Price(call, (tokens[0], tokens[1]) if tokens else None)


def read_task(line: str) -> dict:
    """A line of the input, which is refused before any model is called."""
    try:
        task = json.loads(line)
        if not (isinstance(task["prompt"], str) and isinstance(task["expect"], str)):
            raise TypeError
    except (ValueError, LookupError, TypeError):
        raise SystemExit(f'not {{"prompt": "…", "expect": "…"}}: {line.strip()[:80]}') from None
    return dict(task)


def complete(url: str, prompt: str, model: str) -> tuple[str, dict] | None:
    """The answer of one model and its usage; None if the call fails, which is said on stderr."""
    body = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    head = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), head)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            found = json.load(answer)
        return found["choices"][0]["message"]["content"] or "", found.get("usage") or {}
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"{model}: {error or type(error).__name__}", file=sys.stderr)
        return None


class Limit(NamedTuple):
    """``budget``: what a set may cost; ``spend``: what a ladder may in the mean; ``ladder``: what success is worth."""

    name: str
    dollars: float


def new_agent(costs: dict[str, float], limit: Limit) -> sa.Agent:
    """An agent for models at these costs: of sets within a budget, or of ladders."""
    n = len(costs)
    actions, policy = sa.Subsets(n), sa.policies.ladder(list(costs.values()))
    if limit.name == "budget":
        actions, policy = sa.Knapsack(list(costs.values()), limit.dollars), sa.pooled_thompson()
    if limit.name == "spend":  # a second item for what calls really cost, up to a hundred times the dearest
        policy = sa.policies.ladder(list(costs.values()), scale=100.0 * max(costs.values()), spend=limit.dollars)
        return sa.Agent(sa.Problem(n, 2, sa.Coverage(), actions, weights=[1.0, 0.0]), policy, arms=list(costs), seed=0)
    return sa.Agent(sa.Problem(n, 1, sa.Coverage(), actions), policy, arms=list(costs), seed=0)


def open_agent(prices: dict[str, Price], limit: Limit, state: Path | None) -> sa.Agent:
    """A new agent, or the one that was saved, with today's models, prices and limits, and all that it learnt."""
    unit = limit.dollars if limit.name == "ladder" else 1.0  # costs of such a ladder are in units of a success
    costs = {model: price.call / unit for model, price in prices.items()}
    if state is None or not state.exists():
        return new_agent(costs, limit)
    agent = sa.Agent.from_state(json.loads(state.read_text()))
    knapsack, spends = isinstance(agent.problem.actions, sa.Knapsack), isinstance(agent.policy, sa.policies.SpendLadder)
    saved = "budget" if knapsack else "spend" if spends else "ladder"
    if saved != limit.name:
        raise SystemExit(f"{state} was saved with --{saved}: give another file")
    owner = agent.problem.actions if knapsack else agent.policy if spends else agent.policy.oracle
    known = dict(zip(agent.arms, owner.costs.tolist(), strict=True))
    changed = {model: cost for model, cost in costs.items() if known.get(model) != cost}
    # Models that are not given any more stay known, and are not eligible.
    if changed or getattr(owner, saved, limit.dollars) != limit.dollars:
        agent.change_prices(changed, None if saved == "ladder" else limit.dollars)
    return agent


def answer(agent: sa.Agent, task: dict, url: str, prices: dict[str, Price], ladder: bool) -> tuple[bool, float]:
    """Run the models that the agent chooses, and tell it which succeeded: whether one did, and the dollars."""
    decision, call = agent.ask(eligible=list(prices)), partial(complete, url, task["prompt"])
    won: list[bool | None] = []  # None: the call failed, or was not made
    bills: list[float] = []
    with ThreadPoolExecutor(8) as pool:
        answers = map(call, decision.arms) if ladder else pool.map(call, decision.arms)
        for model, found in zip(decision.arms, answers, strict=True):
            won.append(None if found is None else task["expect"] in found[0])
            bills.append(0.0 if found is None else prices[model].bill(found[1]))
            if ladder and won[-1]:
                break
    tried, missing = len(won), len(decision.arms) - len(won)
    won, scale = won + [None] * missing, getattr(agent.policy, "scale", 1.0)
    saved = [max(0.0, 1.0 - bill / scale) for bill in [*bills, *[0.0] * missing]]
    n_items = agent.problem.n_items  # one, or two: the share of ``scale`` that a call did not cost
    outcome = [[float(one or 0), save][:n_items] for one, save in zip(won, saved, strict=True)]
    agent.tell(decision, outcome, seen=[[one is not None] * n_items for one in won])
    print(f"{', '.join(decision.arms[:tried])}: {'solved' if True in won else 'not solved'}")
    return True in won, sum(bills)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("models", nargs="+", type=read_price, help="MODEL=DOLLARS per call")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--budget", type=float, help="dollars per prompt: models that run at the same time")
    mode.add_argument("--spend", type=float, help="dollars per prompt in the mean: one model after the other")
    mode.add_argument("--ladder", type=float, metavar="WORTH", help="one model after the other, until one succeeds")
    parser.add_argument("--state", type=Path, help="the file that the agent is saved to, and resumed from")
    given = parser.parse_args()
    prices = dict(given.models)
    if given.budget is not None and (dear := [name for name, price in prices.items() if price.call > given.budget]):
        print(f"--budget {given.budget:g} does not buy {', '.join(dear)}: left out", file=sys.stderr)
        prices = {name: price for name, price in prices.items() if name not in dear}
        if not prices:
            parser.error("the budget buys none of the models: raise it")
    (limit,) = [Limit(name, x) for name in ("budget", "spend", "ladder") if (x := getattr(given, name)) is not None]
    agent = open_agent(prices, limit, given.state)
    n_solved = dollars = n = 0.0
    for task in map(read_task, filter(str.strip, sys.stdin)):
        solved, spent = answer(agent, task, given.url, prices, limit.name != "budget")
        n_solved, dollars, n = n_solved + solved, dollars + spent, n + 1
        if given.state is not None:
            new = given.state.with_suffix(".new")
            new.write_text(json.dumps(agent.to_state()))
            new.replace(given.state)
    each = f"${dollars / n_solved:.4f} per solved task" if n_solved else "none solved"
    print(f"{n_solved:.0f} of {n:.0f} solved at ${dollars / max(n, 1):.4f} per task, {each}")


if __name__ == "__main__":
    main()

"""The same against any OpenAI-compatible endpoint: choose models for every prompt, check the answers, learn.

    python examples/llm_endpoint.py URL MODEL=DOLLARS ... --budget 0.05 < prompts.jsonl

A line of the input is {"prompt": "...", "expect": "..."}: an answer that contains ``expect`` solves it. Put your own
check (tests that pass, a judge) in its place. OPENAI_API_KEY is sent if it is set.
"""

import argparse
import json
import os
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import superarm as sa


def complete(url: str, model: str, prompt: str) -> str:
    """The answer of one model; an empty one if the call fails, which is said on stderr."""
    body = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    head = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), head)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])
    except OSError as error:
        print(f"{model}: {error}", file=sys.stderr)
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("models", nargs="+", help="MODEL=DOLLARS per call")
    parser.add_argument("--budget", type=float, required=True)
    given = parser.parse_args()
    prices = {name: float(price) for name, _, price in (one.rpartition("=") for one in given.models)}
    actions = sa.Knapsack(list(prices.values()), given.budget)
    agent = sa.Agent(sa.Problem(len(prices), 1, sa.Coverage(), actions), arms=list(prices), seed=0)
    solved = dollars = n = 0.0
    with ThreadPoolExecutor(8) as pool:
        for line in sys.stdin:
            task = json.loads(line)
            decision = agent.ask()
            answers = pool.map(lambda model, prompt=task["prompt"]: complete(given.url, model, prompt), decision.arms)
            won = [task["expect"] in answer for answer in answers]
            agent.tell(decision, [[float(one)] for one in won])
            solved, dollars, n = solved + any(won), dollars + sum(prices[arm] for arm in decision.arms), n + 1
            print(f"{', '.join(decision.arms)}: {'solved' if any(won) else 'not solved'}")
    print(f"{solved:.0f} of {n:.0f} solved at ${dollars / max(n, 1):.4f} per task")


if __name__ == "__main__":
    main()

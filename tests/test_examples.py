"""The example programs: what they print, and the endpoint against a local stand-in."""

import dataclasses
import http.server
import json
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import superarm as sa
from examples import best_of, few_shot, llm_portfolio, shelf

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_recorded_outcomes_are_read_as_they_are_published(tmp_path):
    details = [{"b": {"resolved": n == 0, "cost": 0.5}, "a": {"resolved": True, "cost": 0.25 * n}} for n in range(2)]
    boards = [
        {"name": "Verified", "results": []},
        {"name": "bash-only", "results": [{"per_instance_details": one} for one in details] + [{"name": "no details"}]},
    ]
    (tmp_path / "file.json").write_text(json.dumps({"leaderboards": boards}))
    solved, cost = llm_portfolio.recorded(tmp_path / "file.json")
    assert solved.tolist() == [[1, 1], [1, 0]]
    assert cost.tolist() == [[0, 0.25], [0.5, 0.5]]


def test_simulated_issues_have_the_shares_and_prices_of_their_classes():
    solved, cost = llm_portfolio.simulated(issues=20_000)
    expected = np.array([np.dot(llm_portfolio.SHARES, rates) for _, rates in llm_portfolio.MODELS])
    assert np.abs(solved.mean(0) - expected).max() < 0.015  # 4 standard errors of a share
    assert np.allclose(cost.mean(0), [price for price, _ in llm_portfolio.MODELS], rtol=0.06)


def test_a_set_solves_more_than_one_model_within_the_budget():
    solved, cost = llm_portfolio.simulated()
    share, dollars = np.mean([llm_portfolio.run(solved, cost, 0.07, seed) for seed in range(3)], axis=0)
    one, _ = np.mean([llm_portfolio.run(solved, cost, 0.07, seed, "one") for seed in range(3)], axis=0)
    assert share > one + 0.08
    assert dollars < 0.075
    won, paid, claimed = llm_portfolio.ladder(solved, cost, 0.07, np.arange(500), 0)
    assert won.mean() > share
    assert (won == claimed).all(), "the check makes no errors"
    assert paid.mean() == pytest.approx(0.07, rel=0.03)
    lenient = np.maximum(solved, np.random.default_rng(0).random(solved.shape) < 0.1)
    won, _, claimed = llm_portfolio.ladder(solved, cost, 0.07, np.arange(500), 0, lenient)
    assert won.mean() + 0.02 < claimed.mean()
    alone, spent = llm_portfolio.run(solved, cost, 0.07, 0, "cheapest")
    assert (alone, spent) == (solved[:, :2].max(1).mean(), cost[:, :2].sum(1).mean())  # 0.028 + 0.035 dollars


def test_sets_for_the_best_mark_deliver_more_than_the_highest_means():
    best, means = (np.mean([best_of.run(method, seed) for seed in range(3)]) for method in best_of.METHODS[:2])
    assert best > means + 0.15  # 0.37 over twenty orders


class StandIn(http.server.BaseHTTPRequestHandler):
    """Model "good" knows the answer, "bad" does not, "silent" says nothing, "down" fails, "odd" answers otherwise."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["model"] == "down":
            self.send_error(500)
            return
        text = {"good": "it is 42", "silent": None}.get(asked["model"], "no idea")
        reply = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        usage = {"prompt_tokens": 1000, "completion_tokens": 2000}
        body = json.dumps({"error": "busy"} if asked["model"] == "odd" else reply | {"usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandIn) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def ask_endpoint(endpoint, n, *words, status=0):
    prompts = "".join(json.dumps({"prompt": "6 x 7?", "expect": "42"}) + "\n" for _ in range(n))
    command = [sys.executable, EXAMPLES / "llm_endpoint.py", endpoint, *map(str, words)]
    done = subprocess.run(command, input=prompts, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_an_endpoint_is_asked_and_the_good_model_is_found(endpoint):
    lines, errors = ask_endpoint(endpoint, 40, "bad=0.02", "good=0.03", "silent=0.03", "--budget", 0.03)
    assert lines[-11:-1] == ["good: solved"] * 10
    assert int(lines[-1].split()[0]) >= 30
    assert errors == ""


def test_failed_calls_are_neither_billed_nor_held_against_a_model_and_the_agent_is_resumed(endpoint, tmp_path):
    state = tmp_path / "agent.json"
    models = ["down=0.01", "odd=0.01", "good=0.03/1/2"]
    lines, errors = ask_endpoint(endpoint, 6, *models, "--budget", 0.05, "--state", state)
    assert lines[-1] == "6 of 6 solved at $0.0050 per task, $0.0050 per solved task"  # 1000 and 2000 tokens
    assert "down: HTTP Error 500" in errors
    assert "odd: 'choices'" in errors
    ask_endpoint(endpoint, 4, *models, "--budget", 0.05, "--state", state)
    tally = sa.Agent.from_state(json.loads(state.read_text())).tally
    assert np.broadcast_to(tally.counts(tally.pulls), tally.total.shape).ravel().tolist() == [0, 0, 10]
    _, refused = ask_endpoint(endpoint, 1, *models, "--ladder", 1.0, "--state", state, status=1)
    assert "was saved with --budget: give another file" in refused


@pytest.mark.parametrize("limit", [("--budget", 0.05), ("--ladder", 1.0), ("--spend", 0.2)])
def test_what_was_learnt_outlives_a_change_of_models_and_prices(endpoint, tmp_path, limit):
    """All of it was thrown away at the first new price."""
    state = tmp_path / "agent.json"

    def pulls(n: int, *models: str) -> dict[str, float]:
        ask_endpoint(endpoint, n, *models, *limit, "--state", state)
        agent = sa.Agent.from_state(json.loads(state.read_text()))
        assert limit[0] == "--budget" or agent.problem.k == len(agent.arms), "a model may never be tried"
        counts = np.broadcast_to(agent.tally.counts(agent.tally.pulls), agent.tally.total.shape)
        return dict(zip(agent.arms, counts[0, 0].tolist(), strict=True))

    before = pulls(6, "bad=0.02", "good=0.03")
    after = pulls(6, "silent=0.01", "good=0.04")
    assert list(after) == ["bad", "good", "silent"]
    assert after["bad"] == before["bad"] > 0.0, "it is not given any more"
    assert after["good"] >= before["good"] + 5.0
    assert pulls(3, "bad=0.01", "good=0.04")["silent"] == after["silent"] > 0.0


def test_a_ladder_of_models_stops_at_the_first_success(endpoint):
    lines, _ = ask_endpoint(endpoint, 30, "good=0.03", "bad=0.02", "--ladder", 1.0)
    assert set(lines[:-1]) == {"bad, good: solved", "good: solved"}
    assert lines[-11:-1].count("good: solved") > 5
    assert lines[-1].startswith("30 of 30 solved")


def test_a_ladder_keeps_its_spend_by_what_calls_are_billed(endpoint, tmp_path):
    """The price list says a cent, and calls cost 5 cents: the dear model is called less than the list would allow."""
    state = tmp_path / "agent.json"
    for _ in range(2):
        models = ("bad=0.01", "good=0.01/10/20")
        lines, _ = ask_endpoint(endpoint, 60, *models, "--spend", 0.03, "--state", state)
    assert float(lines[-1].split("at $")[1].split()[0]) == pytest.approx(0.03, rel=0.1)
    assert sa.Agent.from_state(json.loads(state.read_text())).t == 120


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["good", "--budget", "1"], "'good' has no price"),
        (["dear=2", "--budget", "1"], "buys none of the models"),
    ],
)
def test_models_without_a_price_or_above_the_budget_are_refused(words, said):
    assert said in ask_endpoint("http://127.0.0.1:1/v1", 0, *words, status=2)[1]


def test_a_model_above_the_budget_is_left_out_and_bad_lines_are_refused_before_a_call(endpoint):
    lines, errors = ask_endpoint(endpoint, 2, "good=0.03", "dear=2", "--budget", 1)
    assert lines[-1].startswith("2 of 2 solved")
    assert "does not buy dear: left out" in errors
    command = [sys.executable, EXAMPLES / "llm_endpoint.py", endpoint, "good=0.03", "--budget", "1"]
    good = json.dumps({"prompt": "6 x 7?", "expect": "42"})
    for text, status, said in ((f"{good}\n\n", 0, ""), ('{"prompt": "6 x 7?"}\n', 1, 'not {"prompt": "…", "expect"')):
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr[: len(said)]) == (status, said)


def test_learnt_items_serve_more_people_than_top_sellers_and_promise_less(monkeypatch):
    monkeypatch.setattr(shelf, "SHELVES", 10_000)
    found = shelf.shelves(shelf.simulated())
    (top_claim, top), (claim, real) = found["top sellers"], found["learnt items"]
    assert real > top + 0.04
    assert abs(claim - real) < 0.06 < top_claim - top


@pytest.mark.parametrize("way", ["Tastes", "TopSellers"])
def test_every_agent_of_the_shelf_fills_it_and_learns(monkeypatch, way):
    """A film that everybody likes and 99 that nobody likes: it is found."""
    monkeypatch.setattr(shelf, "VISITS", 400)
    liked = np.zeros((50, 20))
    liked[:, 3] = 1.0
    got = shelf.online(dataclasses.replace(shelf.simulated(), liked=liked), 0, getattr(shelf, way))
    assert got[-100:].mean() > 0.85 > got[:4].mean()


def test_vowpal_wabbit_is_told_films_costs_and_chances(monkeypatch):
    """A stand-in for its package, which is not installed here, gets the lines of its format for CCB."""
    got = []

    class Workspace:
        def __init__(self, options):
            assert options.startswith("--ccb_explore_adf")

        def predict(self, lines):
            got.append(lines.split("\n"))
            return [[(film, 0.25), (6, 0.125)] for film in range(shelf.K)]

        def learn(self, lines):
            got.append(lines.split("\n"))

    monkeypatch.setitem(sys.modules, "vowpalwabbit", types.SimpleNamespace(Workspace=Workspace))
    agent = shelf.VowpalWabbit(7, 0)
    assert agent.ask().tolist() == [0, 1, 2, 3, 4]
    agent.tell(np.array([0.0, 1.0, 0.0, 0.0, 1.0]))
    head = ["ccb shared |", *(f"ccb action |f {n}" for n in range(7))]
    costs = [f"ccb slot {n}:{cost}:0.25 |" for n, cost in enumerate(("-0", "-1", "-0", "-0", "-1"))]
    assert got == [head + ["ccb slot |"] * 5, head + costs]


def test_mmr_prefers_other_genres():
    rates, genres = (
        np.array([0.5, 0.49, 0.3, 0.1, 0.1, 0.1]),
        np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 0], [1, 1]], bool),
    )
    assert shelf.mmr(rates, genres)[:2] == [0, 2]


def test_movielens_is_read_as_recbole_ships_it(tmp_path):
    (tmp_path / "ml-100k.inter").write_text("head\n1\t10\t5\t0\n1\t20\t2\t0\n2\t20\t4\t0\n3\t10\t1\t0\n")
    (tmp_path / "ml-100k.item").write_text("head\n10\tAlien\t1979\tHorror Sci-Fi\n20\tHeat\t1995\tAction\n")
    people = shelf.read_movielens_100k(tmp_path, 2)
    assert people.films == ("Alien", "Heat")
    assert people.liked.tolist() == [[1, 0], [0, 1]]
    assert people.genre_names == ("Action", "Horror", "Sci-Fi")
    assert people.genres.tolist() == [[False, True, True], [True, False, False]]


@pytest.mark.slow("an example of 1,000 calls")
def test_examples_are_chosen_by_what_their_sets_score():
    found = few_shot.run(calls=1_000, runs=1)
    last = {name: worth[:, -1].mean() for name, worth in found.items()}
    assert last["superarm"] > max(last["linear Thompson"], last["random search"])
    assert few_shot.calls_until(found)["superarm"] is not None


def test_examples_are_scored_by_questions_and_drawn(tmp_path):
    found = few_shot.run(calls=100, runs=1)
    assert {name: worth.shape for name, worth in found.items()} == dict.fromkeys(few_shot.WAYS, (1, 2))
    few_shot.draw(found, str(tmp_path / "few_shot.png"))
    digits, chosen = few_shot.Digits(0), np.arange(10)
    scores = [digits.score(chosen) for _ in range(400)]
    assert np.mean(scores) == pytest.approx(digits.worth(chosen), abs=0.025)  # 4 errors

"""The page of a comparison, and the command that writes it."""

import html.parser
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import superarm as sa
from superarm.cli import main
from superarm.offline.page import choose_ticks, draw_strips

from .static_logs import coverage_problem, draw_log
from .test_log import table_of

P = np.random.default_rng(1).uniform(0.05, 0.5, (6, 2))


@pytest.fixture(scope="module")
def log():
    return draw_log(coverage_problem(), P, [0, 1], 0.5, 600, np.random.default_rng(0))


class Balance(html.parser.HTMLParser):
    """Finds elements that are not closed, and collects the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.links = [], "", []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href") and not value.startswith("#")]
        if tag not in ("meta", "line", "circle", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_is_complete_and_needs_nothing_else(log, tmp_path):
    targets = {"KL & UCB <1>": sa.kl_ucb(), "now": "logged", "first": [0, 1], "random": sa.uniform()}
    path = log.compare(targets).report(tmp_path / "compare.html")
    page = Balance()
    page.feed(path.read_text())
    assert page.open == []
    assert page.links == []
    assert "KL & UCB <1>" in page.text
    assert page.text.count("Value per round") == 1
    assert "semi-bandit assumption" in page.text
    assert "worth the most for certain" in page.text
    assert path.read_text().count('<svg class="strip"') == 2 * (len(targets) + 1)


def test_a_strip_is_where_its_numbers_are():
    drawn = draw_strips(
        [("a", (0.0, 5.0, 10.0), (4.0, 6.0), "better"), ("b", (2.0, 2.0, float("inf")), None, "x")], 0.0
    )
    a, b = drawn["rows"]
    assert (a["low"] + a["high"]) / 2 == pytest.approx(a["value"])
    reach = 0.1 * (a["high"] - a["low"])
    assert a["near"] == pytest.approx((a["value"] - reach, a["value"] + reach), abs=1e-3)
    assert b["high"] == 100.0
    assert drawn["reference"] == a["low"]
    for low, high in [(0.0, 1.0), (-3e-5, 2e-5), (990.0, 1010.0), (0.0, 7.0)]:
        ticks = choose_ticks(low, high)
        assert 2 <= len(ticks) <= 6
        assert all(low <= x <= high for x in ticks)


def test_the_command_prints_and_writes_a_page(log, tmp_path):
    source, out = tmp_path / "log.jsonl", tmp_path / "report.html"
    source.write_text("\n".join(json.dumps(row) for row in table_of(log)))
    words = ["evaluate", str(source), "--policy", "kl_moss", "--policy", "baseline", "--reward", "coverage"]
    words += ["--policy", "bc_ucb rho=0.5 window=100", "--policy", "directional_kl_ucb explore=0.2"]
    done = CliRunner().invoke(main, [*words, "--slate", "arm 0, arm 1", "--out", str(out)])
    assert done.exit_code == 0, done.output
    for text in (
        "600 rounds; of 6 arms 0 were never observed",
        "kl_moss",
        "baseline",
        "arm 0, arm 1",
        "to ship: slate:",
    ):
        assert text in done.stdout
    assert f"page: {out}" in done.stdout
    assert re.search(r"<strong>Not decided</strong>|<strong>Better</strong>", out.read_text())
    again = CliRunner().invoke(main, [*words, "--against", "arm 4,arm 5", "--method", "direct"])
    assert "minus slate arm 4, arm 5" in again.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--policy", "magic", "--reward", "coverage"], "give a policy of the catalogue, such as kl_ucb"),
        (["--policy", "sliding_window", "--reward", "coverage"], "unknown 'sliding_window'"),
        (["--policy", "kl_ucb nu=2", "--reward", "coverage"], "no 'kl_ucb' with the parameters"),
        (["--reward", "magic"], "give coverage, linear, logistic"),
        ([], "reward: the file does not say"),
        (["--slate", "nobody", "--reward", "coverage"], "unknown name 'nobody'"),
    ],
)
def test_mistakes_are_one_sentence(log, words, sentence, tmp_path):
    source = tmp_path / "log.jsonl"
    source.write_text("\n".join(json.dumps(row) for row in table_of(log)[:40]))
    done = CliRunner().invoke(main, ["evaluate", str(source), *words])
    assert done.exit_code == 2
    assert sentence in done.stderr

import functools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from superarm import experiments
from superarm.cli import main
from superarm.experiments.analysis import claims, summary
from superarm.experiments.commands import bounds, compare, report, run
from superarm.simulation import instances

SPEC = """
name = "small"
horizon = {horizon}
replications = 4
seed = 5
checkpoints = 20

[instances.random]
generator = "random_coverage"
n_arms = 8
n_items = 3
k = {{ sweep = [2, 3] }}

[policies.CUCB]
policy = "cucb"

[policies.uniform]
policy = "uniform"
"""

CLAIM = """
[[claims]]
kind = "slope"
policy = "CUCB"
against = "k"
below = 100.0
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SPEC.format(horizon=60))
    return path


def _invoke(command, *arguments):
    return CliRunner().invoke(main, [command.name, *(str(argument) for argument in arguments)])


def test_bounds_names_theorems_guarantees_and_assumptions(tmp_path):
    spec = tmp_path / "small.toml"
    spec.write_text(SPEC.format(horizon=60).replace("{ sweep = [2, 3] }", "2"))
    done = _invoke(bounds, spec, "--out", tmp_path / "bounds", "--quiet")
    assert done.exit_code == 0, done.output
    assert "CUCB: Wang-Chen; regret and gaps are measured from alpha beta r_max, alpha 0.75, beta 1" in done.output
    assert "uniform: no theorem is about this policy here" in done.output
    assert "complete feedback before the next round" in done.output
    assert (tmp_path / "bounds" / "01" / "bounds.png").is_file()


@pytest.mark.usefixtures("blank_figures")
def test_bounds_uses_stored_results(tmp_path, monkeypatch):
    spec = tmp_path / "small.toml"
    spec.write_text(SPEC.format(horizon=60).replace("{ sweep = [2, 3] }", "2"))
    options = ("--out", tmp_path / "bounds", "--results", tmp_path / "results", "--quiet")
    simulated = _invoke(bounds, spec, *options)
    assert _invoke(run, spec, "--out", tmp_path / "results", "--quiet").exit_code == 0
    monkeypatch.delattr("superarm.theory.report.simulate")  # nothing is simulated from here on
    stored = _invoke(bounds, spec, *options)
    assert stored.exit_code == 0, stored.output
    assert f"with the regret in {tmp_path / 'results'}" in stored.output

    def regret(output):
        return [line for line in output.splitlines() if line.startswith("regret")]

    assert len(regret(stored.output)) == 2
    assert regret(stored.output) == regret(simulated.output)


@pytest.mark.usefixtures("blank_figures")
def test_the_commands_of_the_report_work_in_its_directory(spec, tmp_path, monkeypatch):
    assert _invoke(run, spec, "--out", tmp_path / "out", "--quiet").exit_code == 0
    monkeypatch.chdir(tmp_path / "out")
    commands = re.findall(r"<code>superarm (\w+) ([^<]*)</code>", Path("report.html").read_text(encoding="utf-8"))
    assert [name for name, _ in commands] == ["run", "report"]
    for name, arguments in commands:
        done = CliRunner().invoke(main, [name, *arguments.split()])
        assert done.exit_code == 0, done.output
        assert "4 of them already done" in done.stderr or name == "report"


@pytest.mark.usefixtures("blank_figures")
def test_run_report_and_run_again(spec, tmp_path):
    out = tmp_path / "out"
    first = _invoke(run, spec, "--out", out, "--workers", 2)
    assert first.exit_code == 0, first.output
    assert "small: 4 cells; results go to" in first.stderr
    lines = re.findall(r"^\d:\d\d:\d\d finished (\d) of 4 cells: (.*)$", first.stderr, re.MULTILINE)
    assert [n for n, _ in lines] == ["1", "2", "3", "4"]
    assert {label for _, label in lines} == {
        f"{name} on random (k={k})" for name in ("CUCB", "uniform") for k in (2, 3)
    }
    assert "random (k=2): regret after 60 rounds" in first.stdout
    assert (out / "report.html").exists()
    second = _invoke(run, spec, "--out", out)
    assert "4 of them already done" in second.stderr
    assert "finished" not in second.stderr
    (out / "report.html").unlink()
    assert _invoke(report, out).exit_code == 0
    assert (out / "report.html").exists()


def _counting(monkeypatch, module, name):
    """Replace a function by itself, and return the list that each of its calls is added to."""
    calls, function = [], getattr(module, name)

    @functools.wraps(function)
    def counted(*arguments, **named):
        calls.append(named or arguments)
        return function(*arguments, **named)

    monkeypatch.setattr(module, name, counted)
    return calls


@pytest.mark.usefixtures("blank_figures")
def test_run_generates_every_instance_once(spec, tmp_path, monkeypatch):
    calls = _counting(monkeypatch, instances, "random_coverage")
    assert _invoke(run, spec, "--out", tmp_path / "out").exit_code == 0
    assert [call["k"] for call in calls] == [2, 3]


@pytest.mark.usefixtures("blank_figures")
def test_run_judges_and_summarises_once(spec, tmp_path, monkeypatch):
    spec.write_text(spec.read_text() + CLAIM)
    counted = {
        name: _counting(monkeypatch, summary, name)
        for name in ("summarise_final_regret", "trace_sweeps", "rank_policies")
    }
    judged = _counting(monkeypatch, claims, "judge_claims")
    assert _invoke(run, spec, "--out", tmp_path / "out").exit_code == 0
    assert len(judged) == len(counted["summarise_final_regret"]) == len(counted["trace_sweeps"]) == 1
    assert len(counted["rank_policies"]) == 2  # once per instance


def test_a_typo_is_answered_with_its_line(spec):
    spec.write_text(spec.read_text().replace("n_items", "n_itmes"))
    refused = _invoke(run, spec)
    assert refused.exit_code == 2
    assert (
        f"Error: {spec}:11: instances.random.n_itmes: unknown key 'n_itmes'; did you mean 'n_items'?" in refused.stderr
    )


def test_an_unknown_name_is_answered_with_the_nearest():
    refused = _invoke(run, "quikstart")
    assert refused.exit_code == 2
    assert "did you mean 'quickstart'?" in refused.stderr


def test_a_scheduler_has_its_own_workers(spec):
    refused = _invoke(run, spec, "--scheduler", "tcp://127.0.0.1:1", "--workers", 2)
    assert refused.exit_code == 2
    assert "--scheduler uses the cluster's own workers" in refused.output


def test_compare_tells_same_from_different(spec, tmp_path):
    for name in ("a", "b", "c"):
        spec.write_text(SPEC.format(horizon=60 if name != "c" else 50))
        experiments.run(experiments.load(spec), tmp_path / name, progress=False)
    same = _invoke(compare, tmp_path / "a", tmp_path / "b")
    assert same.output.count("identical to the bit") == 4
    other = _invoke(compare, tmp_path / "a", tmp_path / "c", "--out", tmp_path / "page.html")
    assert "horizon: 60 and 50" in other.output
    assert "(half a 95 % interval, unpaired, p" in other.output
    assert "Two runs side by side" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("command", [report, compare])
def test_a_directory_without_results_is_named(command, tmp_path):
    refused = _invoke(command, *[tmp_path] * (2 if command is compare else 1))
    assert refused.exit_code == 2
    assert "holds no manifest.json" in refused.stderr


BLOCKED = """
from superarm.experiments.commands import run
from superarm.experiments.execution import executors

play, cells = executors.play_task, []

def play_first_cell(task, stop, report):
    cells.append(task.cell.digest)
    if task.cell.digest != cells[0]:
        assert stop.wait(300)
    return play(task, stop, report)

executors.play_task = play_first_cell
run()
"""


def _start(spec, out):
    """Run a spec in another process, in which every cell but the first waits until it is told to stop."""
    return subprocess.Popen(
        [sys.executable, "-c", BLOCKED, str(spec), "--out", str(out), "--workers", "1"],
        stderr=subprocess.PIPE,
        text=True,
        # A suite started in the background of a script ignores SIGINT, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (no thread forks here)
    )


def test_ctrl_c_keeps_what_is_finished(spec, tmp_path):
    out = tmp_path / "out"
    process = _start(spec, out)
    deadline = time.time() + 300
    while time.time() < deadline and process.poll() is None and not list(out.glob("cells/*.parquet")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"Interrupted. Finished replications are kept: superarm run {spec} --out={out} continues." in told
    (done,) = out.glob("cells/*.parquet")
    assert not list(out.glob("cells/.*"))
    written = os.stat(done).st_mtime_ns
    again = _invoke(run, spec, "--out", out, "--quiet")
    assert again.exit_code == 0, again.output
    assert len(list(out.glob("cells/*.parquet"))) == 4
    assert os.stat(done).st_mtime_ns == written


def test_help_does_not_load_the_library():
    code = "import sys; from superarm.experiments import commands; print(any('numba' in m for m in sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"

"""The command that writes tables of policies on many instances, on a small experiment."""

import numpy as np
import pytest

import superarm as sa
from dev.benchmarks import contest, items
from superarm.experiments.execution.runner import run


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    experiment = sa.Experiment(
        name="small",
        instances={
            f"held-out-{seed}": {"generator": "random_coverage", "n_arms": 3, "n_items": 2, "k": 1, "seed": seed}
            for seed in (1, 2)
        },
        policies={"directional": {"policy": "directional_kl_moss"}, "KL-MOSS": {"policy": "kl_moss"}},
        horizon=60,
        replications=6,
        claims=[
            {"kind": "geometric", "text": "Held out", "policy": "directional", "than": "KL-MOSS", "below": 0.75},
            {"kind": "locked", "text": "Locked", "policy": "directional", "share": 0.01},
        ],
    )
    return run(experiment, tmp_path_factory.mktemp("small"), progress=False)


def test_the_tables_hold_the_figures_of_the_study(study):
    text = contest.format_page(study)
    assert "2 instances, 2 policies, 6 runs of 60 rounds" in text
    for label in study.instances:
        a, b = (study.final_regret(label, policy) for policy in ("directional", "KL-MOSS"))
        row = next(line for line in text.splitlines() if line.startswith(f"| {label} |"))
        assert f"{a.mean() / b.mean():.2f} [" in row
        assert contest.number(float(b.mean())) in row
        tail = next(line for line in text.splitlines() if line.startswith(f"| {label} | directional |"))
        for q in np.quantile(a, [0.5, 0.9, 0.99, 1.0]):
            assert f"| {contest.number(float(q))} " in tail
    ratios = [
        study.final_regret(x, "directional").mean() / study.final_regret(x, "KL-MOSS").mean() for x in study.instances
    ]
    assert f"| directional | {np.exp(np.log(ratios).mean()):.2f} [" in text
    assert "- Locked: " in text
    (held_out,) = (line for line in text.splitlines() if line.startswith("- Held out"))
    (judgement,) = (judgement for judgement in study.judgements if judgement.text == "Held out")
    assert held_out == f"- Held out, geometric mean of directional below 0.75 times KL-MOSS: {judgement.outcome}."


@pytest.mark.parametrize(("seconds", "words"), [(12.0, "less than a minute"), (50.0, "1 minute"), (150.0, "2 minutes")])
def test_a_duration_is_given_in_whole_minutes(seconds, words):
    assert contest.describe_time(seconds) == words


def test_a_ratio_of_means_has_the_interval_of_a_simulation():
    rng = np.random.default_rng(3)
    a, b = rng.gamma(4.0, 1.0, (400, 60)), rng.gamma(4.0, 2.0, (400, 60))
    inside = [
        contest.ratio_of_means(x, y)[1] <= 0.5 <= contest.ratio_of_means(x, y)[2] for x, y in zip(a, b, strict=True)
    ]
    assert 0.90 < np.mean(inside) < 0.98  # 95 %: with 400 trials, beyond these once in 10,000 seeds


def test_the_tables_are_written_between_the_marks_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n<!-- begin y -->\n<!-- end y -->\n")
    contest.write_block(page, "x", "new\n")
    contest.write_block(page, "y", "other\n")
    contest.write_block(page, "x", "newer\n")
    words = " ".join(page.read_text().split())
    assert words == "a <!-- begin x --> newer <!-- end x --> b <!-- begin y --> other <!-- end y -->"
    with pytest.raises(SystemExit, match="begin z"):
        contest.write_block(page, "z", "")


def test_what_a_policy_told_of_independence_needs_falls_with_the_number_of_items():
    one, many = items.expect(1, 0.02, 3e4, 4), items.expect(16, 0.02, 3e4, 4)
    assert one[0] == pytest.approx(many[0])  # the rate is flat if the policy is told
    assert many[1] > many[0]  # and not if it is not
    assert one[2:] == pytest.approx([one[2]] * 4, rel=1e-3)  # with one item all indices are the same
    assert many[2] < many[3] < many[4] < many[5]

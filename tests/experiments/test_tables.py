import csv
import io
import math
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import superarm as sa
from superarm.experiments.analysis.summary import rank_policies
from superarm.experiments.report.tables import BEST_LEVEL, few_runs_decide, write_table
from superarm.output.table import Measured, ResultTable, format_number
from tests.pages import runner

ROWS = [
    {"policy": "BC-UCB & co", "regret": 1234.5678, "p_holm": 0.25},
    {"policy": "x_1", "regret": -0.5, "p_holm": None},
]
TABLE = ResultTable(ROWS, "A_caption")
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "experiments.md"


def test_csv_keeps_numbers_whole():
    assert list(csv.reader(io.StringIO(TABLE.to_csv()))) == [
        ["policy", "regret", "p_holm"],
        ["BC-UCB & co", "1234.5678", "0.25"],
        ["x_1", "-0.5", ""],
    ]


def test_latex_is_escaped_and_aligned():
    text = TABLE.to_latex("tab:x")
    assert r"\begin{tabular}{lrr}" in text
    assert r"BC-UCB \& co & 1,235 & 0.25 \\" in text
    assert r"x\_1 & $-$0.5 & -- \\" in text
    assert r"\caption{A\_caption}" in text
    assert r"\label{tab:x}" in text


def test_files_have_english_headings_in_latex_and_the_names_of_columns_in_csv(tmp_path):
    assert write_table(TABLE, tmp_path / "tables", "t") == ["t.csv", "t.tex"]
    assert r"Policy & Regret & p (Holm) \\" in (tmp_path / "tables" / "t.tex").read_text()
    assert (tmp_path / "tables" / "t.csv").read_text() == TABLE.to_csv()


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (231.87, 8.2, "231.9 ± 8.2"),
        (0.03124, 0.00151, "0.0312 ± 0.0015"),
        (-12.34, 0.996, "-12.3 ± 1.0"),
        (9_999.0, 2_345.0, "10000 ± 2300"),
        (5.0, 0.0, "5.000"),
        (5.0, math.nan, "5.000"),
        (math.nan, math.nan, "–"),
    ],
)
def test_a_number_is_shown_to_the_digits_that_its_error_leaves(value, error, shown):
    assert str(Measured(value, error)) == shown


def test_what_is_best_is_bold_in_every_format():
    table = ResultTable([{"a": Measured(10.0, 2.1, best=True), "b": Measured(20.0, 2.1)}])
    assert r"$\mathbf{10.0 \pm 2.1}$ & $20.0 \pm 2.1$" in table.to_latex()
    assert r"\bfseries\num[separate-uncertainty, detect-weight]{10.0 +- 2.1} &" in table.to_latex(siunitx=True)
    assert "| **10.0 ± 2.1** | 20.0 ± 2.1 |" in table.to_markdown()
    assert '<td class="n"><b>10.0 ± 2.1</b></td><td class="n">20.0 ± 2.1</td>' in table.to_html()
    assert table.to_frame() == {"a": [10.0], "a s.e.": [2.1], "b": [20.0], "b s.e.": [2.1]}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two policies that are the same, and one that is worse."""
    experiment = sa.Experiment(
        name="three",
        instances={
            "family": {"generator": "random_coverage", "n_arms": 8, "n_items": 3, "k": {"sweep": [2]}, "draws": 12}
        },
        policies={"CTS": sa.cts(), "again": sa.cts(), "uniform": sa.uniform()},
        horizon=300,
    )
    return experiment.run(tmp_path_factory.mktemp("three"), progress=False)


def test_the_best_and_all_that_a_paired_test_cannot_tell_from_it_are_bold(study):
    (row,) = study.paper_table().rows
    assert row["Instance"] == "family (batch size 2)"
    assert [row[name].best for name in ("CTS", "again", "uniform")] == [True, True, False]
    values = study.final_regret("family (k=2)", "CTS")
    assert row["CTS"][:2] == pytest.approx((values.mean(), values.std(ddof=1) / math.sqrt(12)))
    assert not any(cell.best for cell in list(study.paper_table(best="none").rows[0].values())[1:])


@pytest.mark.parametrize(("policies", "tables"), [(3, 600), (10, 400), (20, 300)])
def test_all_of_several_equal_policies_are_bold_in_19_of_20_tables(policies, tables):
    """Ten runs with common random numbers. Comparisons with the lowest alone missed one in .055, .125 and .19.

    At most .05 + 5 standard errors, which fails falsely with probability below 1e-6. A policy that is worse is told
    from them in nine of ten tables, so that the rate is not reached by marking everything.
    """
    rng, missed, told = np.random.default_rng(policies), 0, 0
    for _ in range(tables):
        final = rng.normal(10.0, 1.0, (policies + 1, 10)) + rng.normal(0.0, 2.0, 10)
        final[0] += 4.0
        records = {n: SimpleNamespace(regret=values[:, None]) for n, values in enumerate(final)}
        study = SimpleNamespace(records_for=lambda _, records=records: records)
        behind = {one.policy for one in rank_policies(study, "i")[1:] if one.p <= BEST_LEVEL}
        missed, told = missed + bool(behind - {0}), told + (0 in behind)
    assert missed / tables < 0.05 + 5 * math.sqrt(0.05 * 0.95 / tables)
    assert told / tables > 0.9


def test_a_table_says_where_a_few_runs_decide():
    """A costs 1.3 in every run, B 1.0 but in one of ten runs 21: B has the lower median, A the lower mean."""
    regret = {"A": np.full((10, 1), 1.3), "B": np.array([[1.0]] * 9 + [[21.0]])}
    study = SimpleNamespace(
        records_for=lambda _: {name: SimpleNamespace(regret=own) for name, own in regret.items()},
        rankings={"i": [SimpleNamespace(policy="A"), SimpleNamespace(policy="B")]},
    )
    assert few_runs_decide(study, "i")
    regret["B"][-1] = 1.1
    study.rankings["i"].reverse()
    assert not few_runs_decide(study, "i")


def test_a_table_can_be_turned_and_shows_other_values(study):
    turned = study.paper_table("median", rows="policy", columns="instance")
    assert turned["Policy"] == ["CTS", "again", "uniform"]
    assert turned["family (batch size 2)"][0].value == np.median(study.final_regret("family (k=2)", "CTS"))
    assert study.latex("time", best="none").count("$") > 2
    with pytest.raises(sa.InvalidArgument, match="give one of regret, median, time"):
        study.latex("mean")
    with pytest.raises(sa.InvalidArgument, match="give instance and policy"):
        study.markdown(rows="policy")


PAPER = r"""\documentclass[twocolumn]{article}
\usepackage[textwidth=6.9in, columnsep=0.3in]{geometry}
\usepackage{booktabs, graphicx}
\begin{document}
Table~\ref{tab:regret} and Figure~\ref{fig:curves} are as superarm wrote them.
\input{regret}
\begin{figure*}
\centering
\includegraphics{curves}
\caption{Regret over rounds on five families of random instances.}
\label{fig:curves}
\end{figure*}
\begin{figure}
\includegraphics{profile}
\caption{Performance profiles.}
\end{figure}
\end{document}
"""


@pytest.mark.slow("LaTeX")
@pytest.mark.needs("pdflatex")
def test_the_study_of_the_page_goes_into_a_paper_as_it_is(tmp_path):
    text = PAGE.read_text()
    (tmp_path / "page.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.S)))
    with runner() as pages:
        status, output = pages.run(tmp_path / "page.py")
    assert status == 0, output
    (tmp_path / "paper.tex").write_text(PAPER)
    words = [shutil.which("pdflatex"), "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for _ in range(2):  # references are known the second time
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert "undefined" not in done.stdout


def test_numbers_as_people_read_them():
    shown = [format_number(x) for x in (0, 0.123456, 1.0, 99.99, 123456.0, 1e9, -2e-7, math.nan, None)]
    assert shown == ["0", "0.1235", "1.000", "99.99", "123,456", "1.000e+09", "−2.000e−07", "–", "–"]

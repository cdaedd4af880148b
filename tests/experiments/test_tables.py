import csv
import io
import math

from superarm.experiments.report.tables import ExportedTable
from superarm.pages import format_number

ROWS = [{"policy": "BC-UCB & co", "regret": 1234.5678, "p": 0.25}, {"policy": "x_1", "regret": -0.5, "p": None}]
TABLE = ExportedTable("t", "A_caption", ROWS)


def test_csv_keeps_numbers_whole():
    assert list(csv.reader(io.StringIO(TABLE.to_csv()))) == [
        ["policy", "regret", "p"],
        ["BC-UCB & co", "1234.5678", "0.25"],
        ["x_1", "-0.5", ""],
    ]


def test_latex_is_escaped_and_aligned():
    text = TABLE.to_latex()
    assert r"\begin{tabular}{lrr}" in text
    assert r"BC-UCB \& co & 1,235 & 0.25 \\" in text
    assert r"x\_1 & $-$0.5 & -- \\" in text
    assert r"\caption{A\_caption}" in text


def test_both_are_written(tmp_path):
    assert TABLE.write(tmp_path / "tables") == ["t.csv", "t.tex"]
    assert (tmp_path / "tables" / "t.tex").read_text() == TABLE.to_latex()


def test_numbers_as_people_read_them():
    shown = [format_number(x) for x in (0, 0.123456, 1.0, 99.99, 123456.0, 1e9, -2e-7, math.nan, None)]
    assert shown == ["0", "0.1235", "1.000", "99.99", "123,456", "1.000e+09", "−2.000e−07", "–", "–"]

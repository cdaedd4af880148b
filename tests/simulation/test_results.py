"""How results, agents and problems show themselves, and what figures can be asked for."""

import numpy as np
import pytest

import superarm as sa
from superarm.simulation.plots import line_style


@pytest.fixture(scope="module")
def results():
    instance = sa.instances.random_coverage(n_arms=6, n_items=2, k=2)
    policies = {"CUCB": sa.cucb(), "uniform <b>": sa.uniform(), "KL-UCB": sa.kl_ucb()}
    return sa.simulate(instance, policies, horizon=60, replications=4, progress=False)


def test_tables_of_other_libraries_hold_the_same_numbers(results):
    columns = results.to_frame()
    tables = (results.to_pandas(), results.to_polars(), results.to_arrow())
    for table in tables:
        for name, values in columns.items():
            assert np.array_equal(np.asarray(table[name]), values)
    assert len(tables[0]) == 3 * 4 * len(results.rounds)


def test_notebooks_show_a_table_and_a_figure(results):
    shown = results._repr_html_()
    assert "uniform &lt;b&gt;" in shown
    assert "data:image/png;base64," in shown
    assert results.plot()._repr_png_().startswith(b"\x89PNG")
    assert repr(results) == "<Results of CUCB, uniform <b>, KL-UCB: 4 replications of 60 rounds>"


def test_figures_take_what_a_paper_needs(results, tmp_path):
    look = {
        "width": 3.3,
        "height": 2.0,
        "font_size": 7,
        "policies": ["KL-UCB", "CUCB"],
        "log": "xy",
        "quantiles": (0.1, 0.9),
        "styles": {"CUCB": {"color": "black", "linewidth": 3.0}},
    }
    figure = results.plot(tmp_path / "figure.pdf", **look)
    (axes,) = figure.axes
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert figure.get_size_inches().tolist() == [3.3, 2.0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["KL-UCB", "CUCB"]
    assert {text.get_fontsize() for text in axes.get_legend().get_texts()} == {7.0}
    first, second = axes.get_lines()
    assert (second.get_color(), second.get_linewidth()) == ("black", 3.0)
    median = np.median(results.regret["KL-UCB"], axis=0)
    drawn = first.get_ydata()
    assert np.array_equal(drawn[median > 0.0][-5:], median[median > 0.0][-5:])
    assert (drawn > 0.0).all()


def test_figures_are_drawn_into_given_axes(results):
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert results.plot(ax=right) is figure
    assert len(right.get_lines()) == 3
    assert not left.get_lines()
    means = results.regret["CUCB"].mean(axis=0)
    assert np.allclose(right.get_lines()[0].get_ydata(), means)


@pytest.mark.parametrize(
    ("look", "told"),
    [
        ({"colour": "red"}, "colour: unknown; give one of width, height"),
        ({"log": "z"}, "give 'x', 'y' or 'xy'"),
        ({"quantiles": (0.9, 0.1)}, "two increasing numbers"),
        ({"policies": ["CTS"]}, "there is no 'CTS'; give some of CUCB"),
        ({"styles": {"CTS": {}}}, "there is no 'CTS'"),
    ],
)
def test_mistakes_are_named(results, look, told):
    with pytest.raises(sa.InvalidArgument, match=told):
        results.plot(**look)


def test_lines_differ_in_grey():
    styles = [line_style(n) for n in range(64)]
    assert len({(style["color"], str(style["linestyle"])) for style in styles}) == 64
    for n in range(56):
        eight = styles[8 * (n // 8) : 8 * (n // 8) + 8]
        assert len({str(style["linestyle"]) for style in eight}) == 8


def test_agents_and_problems_say_what_they_are():
    problem = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(2), weights=[1, 3])
    assert repr(problem) == "<Problem: 3 arms, 2 items of weight 1 to 3, Coverage(), Subsets(k=2)>"
    agent = sa.Agent(problem, sa.kl_ucb(), arms=["a<", "b", "c"])
    agent.tell(agent.ask(), [[1, 0], [0, 1]])
    assert repr(agent) == "<Agent: 3 arms, 2 items, kl_ucb(rho=1, c=3), 1 decisions, 0 pending>"
    shown = agent._repr_html_()
    assert "<td>a&lt;</td><td>1</td><td>1.000</td><td>0.000</td>" in shown
    assert "<td>c</td><td>0</td><td></td><td></td>" in shown

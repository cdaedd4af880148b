import re
from html.parser import HTMLParser

import numpy as np
import pytest

import superarm as sa
from superarm.describe import describe
from superarm.experiments import Experiment, Study, Threads, run, store
from superarm.experiments.execution.cells import list_cells
from superarm.experiments.report.figures import inline_svg, new_panels, plot_sweeps
from superarm.simulation import Target

_VOID = {"meta", "br", "img", "path", "use", "rect", "line", "image", "link", "hr", "input"}


class Page(HTMLParser):
    """Keeps ids, addresses and text; refuses tags that do not close."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.addresses, self.words = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in _VOID:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            if key in ("src", "href", "xlink:href"):
                self.addresses.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def built(study):
    return study.report()


@pytest.fixture(scope="module")
def page(built):
    return Page(built.read_text(encoding="utf-8"))


def test_every_section_is_there(page):
    wanted = ["curves", "claims", "run", "ranking", "sweeps", "maps", "bounds", "run-time", "again"]
    assert [name for name in page.ids if name in wanted] == wanted


def test_nothing_is_fetched_from_anywhere(page, built):
    outside = [a for a in page.addresses if not a.startswith(("#", "data:", "figures/", "tables/"))]
    assert outside == []
    assert not re.search(r"@import|url\(\s*['\"]?http", built.read_text(encoding="utf-8"))


def test_what_is_linked_is_there(page, built):
    files = [a for a in page.addresses if a.startswith(("figures/", "tables/"))]
    assert {f.rsplit(".", 1)[-1] for f in files} == {"svg", "png", "pdf", "csv", "tex"}
    for file in files:
        assert (built.parent / file).stat().st_size > 100


def test_ids_inside_of_figures_do_not_collide(page):
    assert len(page.ids) == len(set(page.ids))


def test_the_numbers_are_on_the_page(page, study):
    words = " ".join(" ".join(page.words).split())
    for text in (
        "learning helps",
        "✓ holds",
        "✗ fails",
        "p (Holm)",
        study.digest,
        "numba",
        "slope of log regret (optimal target) in log k",
        "They cover simulation noise only",
        "Every value of a sweep counts as an instance of its own.",
        "No bound on random (k=2), random (k=3): The bounds are of regret against what the oracle guarantees",
        "s of processor time",
    ):
        assert text in words
    assert f"{study.final_regret('random (k=2)', 'CUCB').mean():.1f}" in words


def test_figures_take_the_colours_of_the_page(built):
    text = built.read_text(encoding="utf-8")
    svg = text[text.index("<svg class=") :]
    assert "currentColor" in svg
    assert "var(--c0)" in svg
    assert "#39424e" not in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_a_figure_in_a_page_rounds_coordinates_and_not_labels():
    figure, (axes,) = new_panels(1)
    axes.set_title("rho = 0.005")
    svg = inline_svg(figure, "rounded", "A panel")
    assert ">rho = 0.005<" in svg
    assert re.findall(r"\d\.\d{3}", svg.replace("0.005", "")) == []


def test_the_same_study_gives_the_same_page(study, built):
    before = built.read_bytes()
    assert study.report().read_bytes() == before


def test_names_are_escaped(study):
    nasty = "<script>alert(1)</script>"
    instances = {nasty if k == "random (k=2)" else k: v for k, v in study.instances.items()}
    records = {(nasty if w == "random (k=2)" else w, p): r for (w, p), r in study.records.items()}
    fields = {name: getattr(study, name) for name in Study.__dataclass_fields__}
    html = Study(**(fields | {"instances": instances, "records": records}))._repr_html_()
    assert nasty not in html
    assert "&lt;script&gt;" in html


def test_a_notebook_shows_figure_and_ranking(study):
    html = study._repr_html_()
    assert 'src="data:image/png;base64,' in html
    assert "CUCB" in html


def test_an_incomplete_study_says_so(study):
    fields = {name: getattr(study, name) for name in Study.__dataclass_fields__}
    some = {labels: record for labels, record in study.records.items() if labels != ("random (k=3)", "CUCB")}
    assert "(incomplete)" in Study(**(fields | {"records": some}))._repr_html_()


def _grid(directory):
    """Ten policies on three instances, with made-up numbers: what the report has to cope with."""
    sweep = {"sweep": [round(0.05 * n, 2) for n in range(1, 4)]}
    experiment = Experiment(
        name="large",
        instances={"random": {"generator": "random_coverage", "n_arms": 30, "n_items": 10, "k": 3, "high": sweep}},
        policies={f"KL-UCB {n}": {"policy": "kl_ucb", "rho": 0.1 * n} for n in range(1, 11)},
        horizon=10_000,
        replications=4,
        checkpoints=200,
    )
    grid = list_cells(experiment)
    for n, cell in enumerate(grid):
        rng = np.random.default_rng(n)
        rounds, batch_rounds = cell.recorded_rounds[1:], cell.batch_rounds
        regret = np.cumsum(rng.exponential(1.0 + n % 10, (4, len(rounds))), axis=1)
        batches = rng.permuted(np.tile(np.arange(30), (4, len(batch_rounds), 1)), axis=2)[:, :, :3]
        metadata = {
            "target": Target("oracle", 2.0, None)._asdict(),
            "policy": describe(cell.policy),
            "instance": cell.source.digest,
            "written": repr(cell.policy),
            "computed": store.provenance("Threads(2)") | {"finished": store.now()},
        }
        made = store.CellResults(
            rounds, regret, rng.uniform(0, 1e4, (4, 30)), batch_rounds, batches, np.full(4, 0.1), metadata
        )
        store.write_cell(directory, cell, made)
        store.write_instance(directory, cell.source)
    store.write_text(directory / "spec.toml", experiment.to_toml())
    store.write_manifest(directory, store.begin_manifest(experiment, grid, "Threads(2)"))


def test_the_report_of_a_large_grid_stays_small(tmp_path):
    _grid(tmp_path)
    assert Study.load(tmp_path).report().stat().st_size < 30 * 25_000  # so that 200 cells take less than 5 MB


def test_policies_can_be_hidden_and_axes_be_logarithmic(study, built):
    page = built.read_text(encoding="utf-8")
    for n in range(len(study.policies)):
        assert page.count(f'id="show-{n}"') == 1
        assert f"body:has(#show-{n}:not(:checked)) .policy-{n}" in page
        assert page.count(f'class="policy-{n}"') >= 2 * len(study.instances)  # lines, on both kinds of axes
    linear, logarithmic = page.split('<div class="panels linear-axes">')[1].split('<div class="panels log-axes">')[:2]
    assert linear.count("<svg") == len(study.instances)
    assert logarithmic.split("</section>")[0].count("<svg") == len(study.instances)


def test_the_target_is_named_wherever_regret_is_printed(study, page, built):
    assert study.targets == study.target("random (k=2)") == "optimal"
    assert "100 rounds, optimal target" in str(study)
    assert "regret, optimal target [95 %]" in page.words
    assert "regret (optimal target)" in study._repr_html_()
    assert study.plot().axes[0].get_ylabel() == "regret (optimal target)"
    assert study.plot("random (k=2)", width="column").axes[0].get_ylabel() == "regret (optimal target)"
    assert plot_sweeps(study.sweep_lines).axes[0].get_ylabel() == "regret (optimal target)"
    for table in (built.parent / "tables").glob("*.tex"):
        assert "optimal target" in table.read_text(), table


def test_the_legend_of_a_column_leaves_room_for_the_curves(tmp_path):
    names = ["CUCB", "BC-UCB", "KL-UCB", "Thompson sampling", "pooled", "narrow"]
    policies = {name: {"policy": "uniform"} for name in names}
    one = {"one": {"generator": "random_coverage", "n_arms": 4, "n_items": 2, "k": 2}}
    small = Experiment(name="small", instances=one, policies=policies, horizon=5, replications=2)
    figure = run(small, tmp_path, progress=False).plot(width="column")
    figure.canvas.draw()
    legend, whole = figure.legends[0].get_window_extent(), figure.bbox
    assert legend.height < whole.height / 4
    assert whole.x0 <= legend.x0 < legend.x1 <= whole.x1


def test_each_instance_has_its_own_target_and_negative_regret_is_warned_of(tmp_path):
    p = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.1]])  # greedy begins with arm 2
    trap = sa.Instance(sa.Problem(3, 4, sa.Coverage(), sa.Subsets(2)), sa.environments.Bernoulli(p))
    large = {"generator": "random_coverage", "n_arms": 200, "n_items": 2, "k": 4}
    sizes = {"policies": {"CTS": sa.cts(), "uniform": sa.uniform()}, "horizon": 50, "replications": 3}
    default = Experiment(name="default", instances={"trap": trap, "large": large}, **sizes)
    found = run(default, tmp_path / "default", Threads(1), progress=False)
    assert (found.target("trap"), found.target("large")) == ("optimal", "oracle")
    assert found.targets == "optimal or oracle"
    assert not found.warnings("trap")
    oracle = Experiment(name="oracle", instances={"trap": trap}, target="oracle", **sizes)
    found = run(oracle, tmp_path / "oracle", Threads(1), progress=False)
    (warning,) = found.warnings("trap")
    assert "negative mean regret of CTS" in warning
    assert warning in str(found)
    assert warning in Page(found._repr_html_()).words
    assert warning in Page(found.report().read_text(encoding="utf-8")).words

"""The documentation runs, cites what exists, and every formula has a source."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import superarm
from dev.tools import reference_pages, typescript_types
from dev.tools.package_examples import drop_times
from tests.pages import runner

ROOT = Path(__file__).parent.parent
OUTSIDE = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / ".github").glob("*.md"))]
"""Pages that are not below docs: the README, what contributors and users of the repository read."""
OUTSIDE_BY_NAME = {page.name.lower(): page for page in OUTSIDE}
"""The pages of the site whose text is a file of the repository's root."""
PAGES = [*OUTSIDE, *sorted((ROOT / "docs").rglob("*.md"))]


def _blocks(page):
    """The Python examples of a page that are scripts; those with prompts are doctests."""
    return [block for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S) if ">>> " not in block]


FIRST = ("README.md", "own-components.md", "quickstart-agent.md", "agent.md")
"""The pages whose examples run in the first tier; those of all others are in the second."""
RUNNABLE = [
    pytest.param(page, marks=() if page.name in FIRST else pytest.mark.slow("every page of the documentation"))
    for page in PAGES
    if _blocks(page)
]
PROMPTED = [page for page in PAGES if ">>> " in page.read_text()]
CITING = ("indices", "rewards", "oracles", "policies", "theory")
WITHOUT_FORMULAS = {"__init__.py", "memory.py", "screen.py"}


@pytest.fixture(scope="module")
def pages():
    with runner() as found:
        yield found


def _write_examples(page, directory):
    script = directory / "page.py"
    script.write_text("\n".join(_blocks(page)))
    return script


def _compare_output(page, output):
    """Compare what the examples of a page printed with what the page shows."""
    printed = drop_times(output).splitlines()
    for shown in re.findall(r"```python\n[^`]*```\n\n```text\n(.*?)```", page.read_text(), re.S):
        assert [line for line in drop_times(shown).splitlines() if line not in printed] == []


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_one_after_the_other(page, pages, tmp_path):
    status, output = pages.run(_write_examples(page, tmp_path))
    assert status == 0, output
    _compare_output(page, output)


def test_a_program_that_begins_with_imports_needs_no_other_block(tmp_path):
    """Readers copy it alone."""
    for page in PAGES:
        for n, block in enumerate(_blocks(page)):
            if "import superarm as sa\n" in block:
                (tmp_path / f"{page.stem}-{n}.py").write_text(block)
    assert any(tmp_path.iterdir())
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", str(tmp_path)]
    found = subprocess.run(ruff, check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_an_example_that_fails_is_noticed_and_leaves_nothing_to_the_next(pages, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("import math, os\nmath.pi = 3\nos.chdir('/')\nraise ValueError('here')")
    status, output = pages.run(script)
    assert status == 1
    assert output.splitlines()[-1] == "ValueError: here"
    script.write_text("import math, os\nprint(math.pi > 3.1, os.getcwd())")
    assert pages.run(script) == (0, f"True {tmp_path}\n")


@pytest.mark.parametrize("page", PROMPTED, ids=lambda page: page.name)
def test_the_sessions_of_a_page_print_what_they_show(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert tried > 0
    assert failed == 0


def test_the_first_example_of_the_readme_is_short():
    first = _blocks(ROOT / "README.md")[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 15


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def _anchors(page):
    """The anchors of a page's headings, as hosts of repositories make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_pages_name_a_heading(page):
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page.read_text()):
        linked = (page.parent / target).resolve() if target else page
        linked = OUTSIDE_BY_NAME.get(linked.name, linked) if linked.parent == ROOT / "docs" else linked
        assert anchor in _anchors(linked), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page):
    """Those of the repository, in code font: sources, tests, tools."""
    for name in re.findall(r"`((?:src|tests|dev|deploy|docs)/[\w./-]+)`", page.read_text()):
        assert (ROOT / name).exists(), name


def test_the_pages_that_the_program_names_exist():
    """In messages, docstrings and templates: ``docs/guides/shop.md``."""
    named = {}
    for source in [file for pattern in ("*.py", "*.html", "*.toml") for file in (ROOT / "src").rglob(pattern)]:
        for name in re.findall(r"\bdocs/[\w/-]+\.(?:md|bib|csv)", source.read_text()):
            named.setdefault(name, source.name)
    assert named
    assert {name: source for name, source in named.items() if not (ROOT / name).exists()} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_that_makes_a_picture_is_named_beneath_it(page):
    for picture, beneath in re.findall(r"^!\[[^]]*\]\((\S+\.png)\)\n\n(.+?)\n\n", page.read_text(), re.M | re.S):
        assert re.search(r"`(superarm run|python|make) ?[^`]*`", beneath), picture


DOCS = ROOT / "docs"
OTHERS = {*reference_pages.PAGES}
WRITTEN = [page for page in DOCS.rglob("*.md") if str(page.relative_to(DOCS)) not in OTHERS]
"""The pages that people write for users; others follow from the program, as what is between ``begin`` and ``end``."""


def test_the_documentation_can_be_read_in_a_day():
    """And the README in two minutes. A new page replaces another one; bars of tables and signs are no words."""
    texts = [re.sub(r"<!-- begin .*?<!-- end", "", page.read_text(), flags=re.S) for page in WRITTEN]
    assert sum(len(re.findall(r"\S*\w\S*", text)) for text in texts) <= 34_900
    assert len(WRITTEN) <= 40
    assert len((ROOT / "README.md").read_text().splitlines()) <= 70
    terms = re.findall(r"^\| (?!term |---)", (DOCS / "reference" / "glossary.md").read_text(), re.M)
    assert 20 <= len(terms) <= 60


def test_every_page_is_reached_by_links_from_the_index():
    """Those of the text: who reads the repository does not see the lists of the site."""
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            targets = re.findall(r"\]\(([^)#:\s]+\.md)", page.read_text())
            waiting += [(page.parent / target).resolve() for target in targets]
    assert {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page not in reached} == set()


@pytest.mark.parametrize("page", reference_pages.PAGES)
def test_a_page_that_follows_from_the_program_is_up_to_date(page):
    assert reference_pages.renew(page) == (ROOT / "docs" / page).read_text(), "run: make pages"


def test_the_types_of_the_typescript_client_are_those_of_the_openapi_document():
    assert typescript_types.make_types() == typescript_types.TARGET.read_text(), "run: make pages"


def test_every_cited_key_is_in_the_bibliography():
    known = set(re.findall(r"@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text()))
    cited = set()
    for source in (ROOT / "src").rglob("*.py"):
        cited |= set(re.findall(r"\[(\w+)\]_", source.read_text()))
    assert cited - known == set()


def test_modules_with_formulas_cite_their_source():
    package, silent = ROOT / "src" / "superarm", []
    for name in CITING:
        files = [package / f"{name}.py"] if (package / f"{name}.py").exists() else (package / name).glob("*.py")
        silent += [file.name for file in files if not re.search(r"\[\w+\]_", file.read_text())]
    assert sorted(set(silent) - WITHOUT_FORMULAS) == []


def test_the_reference_has_every_public_name(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_extensions"))
    api = importlib.import_module("api")
    modules = [importlib.import_module(place) for place in api.PACKAGES]
    listed = {id(getattr(module, name)) for module in modules for name in api.public_names(module)}
    names = set(superarm.__all__) - set(superarm._MODULES)
    assert [name for name in sorted(names) if id(getattr(superarm, name)) not in listed] == []

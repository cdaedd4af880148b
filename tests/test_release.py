"""What a release rests on: the citation, the changelog, the workflows and the supported versions agree."""

import re
import sys
import tomllib
from datetime import date
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

import superarm
from dev.tools.release import name_version
from dev.tools.release_check import find_faults, read_files, released_versions
from dev.tools.versions import PYTHONS, SETS
from superarm.experiments.execution.cells import release_of

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_is_true():
    released = released_versions(CHANGELOG)
    if released:
        assert (CITATION["version"], str(CITATION["date-released"])) == released[0]
        assert superarm.__version__ == CITATION["version"], "a clone without tags builds what it says"
    else:
        assert "version" not in CITATION
    assert CITATION["license"] == PROJECT["project"]["license"]
    assert [author["name"] for author in CITATION["authors"]] == [a["name"] for a in PROJECT["project"]["authors"]]
    (paper,) = CITATION["references"]
    assert f"title = {{{paper['title']}}}" in (ROOT / "docs/references.bib").read_text()


def test_the_version_is_that_of_the_installation():
    assert superarm.__version__ == metadata.version("superarm"), "install again: make -B .venv/.ready"
    assert re.fullmatch(r"\d+(\.\d+)*", release_of(superarm.__version__))


def test_a_tag_that_changelog_or_citation_contradict_is_refused():
    changelog = "## [Unreleased]\n\n## [1.2.3] - 2030-01-02\n\n## [1.2.2] - 2029-01-01\n"
    citation = "title: x\nversion: 1.2.3\ndate-released: 2030-01-02\nlicense: MIT\n"
    sources = '"""A package."""\n__version__ = "1.2.3"\n'
    assert find_faults("v1.2.3", changelog, citation, sources) == []
    assert len(find_faults("v1.2.4", changelog, citation, sources)) == 3
    assert find_faults("v1.2.3", changelog, citation.replace("01-02", "01-03"), sources) == [
        "CITATION.cff: date-released is not 2030-01-02"
    ]
    assert "no version" in find_faults("1.2.3", changelog, citation, sources)[0]


def _with_entry(changelog):
    """The changelog with an entry that is not released, which it lacks right after a release."""
    return changelog.replace("## [Unreleased]\n", "## [Unreleased]\n\n### Fixed\n- A fault.\n", 1)


@pytest.mark.parametrize("released", [False, True], ids=["as it is", "right after a release"])
def test_the_next_release_is_prepared_in_one_step(released):
    """On the changelog and citation of the repository; a second release comes above the first."""
    _, *others = read_files()
    before = _with_entry(CHANGELOG)
    if released:
        before, *others = name_version(before, *others, "8.0.0", "2030-02-03")
        before = _with_entry(before)
    changelog, *others = name_version(before, *others, "9.0.0", "2031-02-03")
    assert find_faults("v9.0.0", changelog, *others) == []
    citation, sources = others
    assert sources.count('"9.0.0"') == 1
    assert yaml.safe_load(citation) == CITATION | {"version": "9.0.0", "date-released": date(2031, 2, 3)}
    assert changelog.replace("## [9.0.0] - 2031-02-03\n\n", "", 1) == before
    with pytest.raises(ValueError, match="no entries"):
        name_version(changelog, *others, "9.0.1", "2031-02-04")
    later, *others = name_version(_with_entry(changelog), *others, "9.0.1", "2031-02-04")
    assert find_faults("v9.0.1", later, *others) == []
    assert released_versions(later)[:2] == [("9.0.1", "2031-02-04"), ("9.0.0", "2031-02-03")]


def test_the_changelog_is_in_order():
    """Newest version first, and in each the sections in one order, each once and with entries."""
    order = ["Added", "Fixed", "Changed", "Deprecated", "Removed", "Security"]
    versions = [Version(name) for name, _ in released_versions(CHANGELOG)]
    assert versions == sorted(versions, reverse=True)
    for section in CHANGELOG.split("\n## [")[1:]:
        names = re.findall(r"^### (.+)$", section, re.M)
        assert names == [name for name in order if name in names]
        assert re.findall(r"^### .+\n(?!- )", section, re.M) == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_permissions_are_few(workflow):
    text = workflow.read_text()
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    table = yaml.safe_load(text)
    assert table["permissions"] == {}
    assert all("timeout-minutes" in job for job in table["jobs"].values())
    writing = {job for job, what in table["jobs"].items() if "write" in what["permissions"].values()}
    assert writing <= {"attest", "publish"}


def test_the_supported_versions_are_the_tested_ones():
    needs = PROJECT["project"]["dependencies"]
    for pin in SETS["oldest"]:
        name, _, version = pin.partition("==")
        (need,) = [need for need in needs if re.match(rf"{name}\b", need)]
        assert version.startswith(re.search(r">=([\d.]+)", need)[1])
    listed = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert tuple(listed) == PYTHONS
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["library"]["strategy"]["matrix"]
    assert tuple(matrix["python"]) == PYTHONS
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}.2"  # that of Debian 12


def test_the_extras_of_the_service_install_all_that_it_imports():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    listed = project["dependencies"] + extras["service"] + extras["postgres"] + extras["mcp"]
    known = {re.match(r"[\w-]+", line)[0].split("-")[0] for line in listed}
    known |= sys.stdlib_module_names | {"superarm"}
    found = set()
    for folder in ("service", "offline", "pages"):
        for path in (ROOT / "src" / "superarm" / folder).rglob("*.py"):
            names = re.findall(r"^ *(?:from|import) ([\w.]+)(?: import .*| as \w+)?(?: +#.*)?$", path.read_text(), re.M)
            found |= {name.partition(".")[0].partition("_")[0] or name for name in names}
    assert {"msgspec", "starlette", "psycopg"} <= found
    assert found - known == set()

"""No test is skipped in silence: what no pass has run is listed, and is an error where all is required."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import left_out, system_packages
from tests.compositions import covering_set

ROOT = Path(__file__).parent.parent
SAMPLE = """
import os
import pytest

def test_plain():
    assert os.environ["NUMBA_DISABLE_JIT"] == "1"

@pytest.mark.compiled("too slow")
def test_compiled():
    assert os.environ["NUMBA_DISABLE_JIT"] == "0"

@pytest.mark.needs("curl")
def test_curl(): pass

def test_by_hand(): pytest.skip("not today")
"""


MODULE = 'import pytest; pytest.importorskip("no_such_module")'


def run_pass(directory, name, *options):
    """One run of the sample by pytest with this project's hooks, without any program on the PATH; its record."""
    record = directory / name
    environment = {"PATH": "/nowhere", "PYTHONPATH": str(ROOT), "TEST_RECORD": str(record)}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1", *options, directory]
    done = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(record.read_text())


@pytest.fixture(scope="module")
def passes(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sample")
    (directory / "conftest.py").write_text("from tests.passes import *")
    (directory / "test_sample.py").write_text(SAMPLE)
    (directory / "test_module.py").write_text(MODULE)
    return [run_pass(directory, "plain"), run_pass(directory, "compiled", "--compiled", "-m", "compiled")]


def test_a_test_that_one_pass_ran_is_complete_and_all_others_are_left_out(passes):
    plain, compiled = passes
    assert plain["test_sample.py::test_plain"] is None
    assert plain["test_sample.py::test_compiled"] == "only compiled: too slow"
    assert compiled == {"test_sample.py::test_compiled": None}
    found = left_out.left_out(passes)
    assert "no_such_module" in found.pop("test_module.py")
    assert found == {
        "test_sample.py::test_curl": "missing: curl",
        "test_sample.py::test_by_hand": "not today",
    }
    assert "test_sample.py::test_compiled" in left_out.left_out([plain])


def test_the_report_ends_with_the_command_and_fails_only_where_all_is_required(passes, tmp_path, monkeypatch, capsys):
    paths = []
    for number, record in enumerate(passes):
        paths.append(str(tmp_path / str(number)))
        Path(paths[-1]).write_text(json.dumps(record))
    monkeypatch.setattr(system_packages, "distribution", lambda: ["debian"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("SUPERARM_REQUIRE_ALL", "0")
    assert left_out.main(paths) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Run: 1 tests as plain Python, 1 compiled, of which 0 of ")
    assert lines[1] == "Not run: 3 of the tests."
    assert lines[-2:] == [
        "  test_sample.py::test_curl (missing: curl)",
        "To run them as well: sudo make system && make test",
    ]
    monkeypatch.setenv("SUPERARM_REQUIRE_ALL", "1")
    assert left_out.main(paths) == 1
    (tmp_path / "complete").write_text(json.dumps({"test_a": None}))
    assert left_out.main([str(tmp_path / "complete")] * 2) == 0


@pytest.mark.parametrize("name", [" × ".join(covering_set()[0])])
def test_the_report_counts_the_compositions_that_were_compiled(name, request):
    its_id = f"tests/test_modes.py::test_compositions_agree{request.node.name.removeprefix(request.node.originalname)}"
    line = left_out.covered({}, {its_id: None, its_id.replace("Coverage", "Linear"): "only compiled"})
    assert f"1 compiled, of which 1 of {len(covering_set())} compositions with 15 pairs" in line


def test_skips_are_made_by_markers_alone():
    """A skip of another kind would be listed by make test all the same; here it is found earlier."""
    made_by_hand = ("pytest.skip" + "(", "mark.skip" + "if", "importorskip" + "(", "+" + "SKIP")
    sources = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    found = [
        path.name
        for path in [*sources, *(ROOT / "src").rglob("*.py")]
        if any(w in path.read_text() for w in made_by_hand)
    ]
    assert found == []


@pytest.fixture
def bare_debian(tmp_path, monkeypatch):
    """A Debian with nothing on the PATH nor beside the programs of root, and root in it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(system_packages, "PROGRAMS_OF_ROOT", str(tmp_path))
    monkeypatch.setenv("SUPERARM_REQUIRE_ALL", "0")
    monkeypatch.setattr(system_packages, "driver_runs", lambda: True)
    monkeypatch.setattr(system_packages, "downloaded_chromium", lambda: None)
    monkeypatch.setattr(system_packages, "distribution", lambda: ["debian"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    system_packages.chromium.cache_clear()
    yield tmp_path
    system_packages.chromium.cache_clear()


ALL_LABELS = "Chromium, a C compiler, openssl, nginx, node and the TypeScript compiler, npm, curl 7.82 or newer"


def fake_apt(directory, provides=""):
    """An ``apt-get`` that notes its arguments and provides copies of itself as these programs."""
    program = directory / "apt-get"
    program.write_text(f'#!/bin/sh\necho "$@" >> {directory}/calls\necho --json\n')
    program.chmod(0o755)
    for name in provides.split():
        with program.open("a") as script:
            script.write(f"/bin/cp {program} {directory}/{name}\n")


def test_root_on_debian_gets_what_is_missing(bare_debian, capsys):
    fake_apt(bare_debian, provides="cc curl chromium nginx openssl node npm tsc")
    assert system_packages.main(optional=False) == 0
    assert capsys.readouterr().out.splitlines() == [f"Installing for the tests: {ALL_LABELS}"]
    packages = "chromium curl gcc libatomic1 libc6-dev nginx-light node-typescript nodejs npm openssl"
    assert packages in (bare_debian / "calls").read_text()


def test_a_failed_installation_ends_well_only_where_it_is_optional(bare_debian, monkeypatch, capsys):
    fake_apt(bare_debian)
    assert system_packages.main(optional=True) == 0
    assert system_packages.main(optional=False) == 1
    monkeypatch.setenv("SUPERARM_REQUIRE_ALL", "1")
    assert system_packages.main(optional=True) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"Missing for some of the tests: {ALL_LABELS}. To install it: make system"


def test_others_than_root_install_nothing(bare_debian, monkeypatch, capsys):
    fake_apt(bare_debian, provides="cc curl chromium nginx openssl")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert system_packages.main(optional=True) == 0
    assert not (bare_debian / "calls").exists()
    assert capsys.readouterr().out.endswith("To install it: sudo make system\n")


@pytest.mark.parametrize("systems", [["debian"], ["ubuntu", "debian"]], ids=" ".join)
def test_before_playwright_is_there_apt_installs_all_else(bare_debian, monkeypatch, systems):
    fake_apt(bare_debian, provides="curl")
    monkeypatch.setattr(system_packages, "distribution", lambda: systems)
    monkeypatch.setattr(system_packages, "driver_runs", lambda: pytest.fail("Playwright is not there yet"))
    assert system_packages.install_early() == 0
    browser = {"chromium", "libatomic1"} if systems == ["debian"] else set()
    installed = {*(bare_debian / "calls").read_text().splitlines()[-1].split()[4:]}
    others = {"curl", "gcc", "libc6-dev", "nginx-light", "node-typescript", "nodejs", "npm", "openssl"}
    assert installed == browser | others


def test_on_ubuntu_chromium_comes_from_playwright(bare_debian, monkeypatch):
    fake_apt(bare_debian)
    monkeypatch.setattr(system_packages, "distribution", lambda: ["ubuntu", "debian"])
    _, by_apt, by_playwright = system_packages.commands(["chromium", "curl"])
    assert by_apt[-2:] == ["curl", "libatomic1"]
    assert by_playwright[2:] == ["playwright", "install", "--with-deps", "chromium"]

"""The library and the laboratory need nothing that only Unix has; the service does, and says so.

Windows is imitated: modules and functions that it lacks are taken away, the encoding of text files has to be named
wherever one is opened, and output goes to a pipe whose encoding is that of Western European Windows.
"""

import os
import subprocess
import sys

AS_ON_WINDOWS = """
import os, signal, sys

UNIX_MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "posix_ipc", "syslog", "readline", "uvloop")
UNIX_FUNCTIONS = (
    "chown", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid", "getuid",
    "killpg", "mkfifo", "nice", "pread", "pwrite", "sched_getaffinity", "setsid", "statvfs", "sync", "uname", "wait3",
)
UNIX_SIGNALS = ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2", "alarm", "pause")


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in UNIX_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r} (as on Windows)", name=name)
        return None


for name in UNIX_MODULES:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refuse())
import importlib.util

found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in UNIX_MODULES else found(name, package)
import numpy, numba  # may prefer what only Unix has, if it is there
for name in UNIX_FUNCTIONS:
    if hasattr(os, name):
        delattr(os, name)
for name in UNIX_SIGNALS:
    if hasattr(signal, name):
        delattr(signal, name)
"""
IMPORT_EVERYTHING = """
import importlib, pkgutil
import superarm

for module in pkgutil.walk_packages(superarm.__path__, "superarm."):
    if not module.name.startswith("superarm.service"):
        importlib.import_module(module.name)
import superarm.service.client  # runs everywhere
results = superarm.simulate(
    superarm.instances.random_coverage(n_arms=5, n_items=2, k=2), {"CUCB": superarm.cucb()}, 20, 2, progress=False
)
print(results.rounds[-1])
try:
    import superarm.service.storage.sqlite
except ModuleNotFoundError as error:
    print(error.name)
"""
RUN_AN_EXPERIMENT = """
from superarm.cli import main

main(["run", "small.toml", "--out", "here"], standalone_mode=False)
main(["bounds", "small.toml", "--out", "bounds"], standalone_mode=False)
main(["compare", "here", "here", "--out", "page.html"], standalone_mode=False)
"""
SPEC = """
name = "small"
title = "Ω, ∞ and 中文"
horizon = 20
replications = 2

[instances.random]
generator = "random_coverage"
n_arms = 5
n_items = 2
k = 2

[policies.CUCB]
policy = "cucb"

[policies."KL-UCB ≥ ∞"]
policy = "kl_ucb"

[[claims]]
kind = "less"
text = "KL-UCB ≤ CUCB"
policy = "KL-UCB ≥ ∞"
than = "CUCB"
"""


def _run(script, directory):
    settings = os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    warnings = ["-X", "warn_default_encoding", "-W", "error::EncodingWarning:superarm"]
    command = [sys.executable, *warnings, "-c", AS_ON_WINDOWS + script]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120, cwd=directory, env=settings)
    assert done.returncode == 0, done.stderr.decode("cp1252")
    return done.stdout.decode("cp1252")


def test_everything_but_the_service_is_imported_without_unix(tmp_path):
    assert _run(IMPORT_EVERYTHING, tmp_path).split() == ["20", "fcntl"]


def test_an_experiment_runs_and_is_reported_without_unix(tmp_path):
    (tmp_path / "small.toml").write_text(SPEC, encoding="utf-8")
    printed = _run(RUN_AN_EXPERIMENT, tmp_path)
    assert "report: here" in printed
    page = (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    assert "Ω, ∞ and 中文" in page

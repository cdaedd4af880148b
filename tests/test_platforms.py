"""The library and the laboratory need no module that only Unix has; the service does, and says so."""

import subprocess
import sys

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys

UNIX = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "posix_ipc", "syslog", "readline", "uvloop")
loaded = set(sys.modules)  # by the interpreter itself, before superarm


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in UNIX:
            raise ModuleNotFoundError(f"No module named {name!r} (as on Windows)", name=name)
        return None


for name in UNIX:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refuse())
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


def test_everything_but_the_service_is_imported_without_unix_modules():
    command = [sys.executable, "-c", IMPORT_EVERYTHING]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["20", "fcntl"]

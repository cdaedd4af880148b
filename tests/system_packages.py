"""What the tests need from the operating system beyond Python and make, and how to install it.

    python -m tests.system_packages               install what is missing, or fail (``make system``)
    python -m tests.system_packages --optional    the same, but go on without it (``make test``)
    python -m tests.system_packages --early       what apt can install without Playwright, while pip installs that

Tests marked ``needs(name)`` are left out where the need is missing; ``make test`` lists them at its end. With
SUPERARM_REQUIRE_ALL=1 (``.ci/run``) nothing is optional.
"""

import functools
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

PROGRAMS_OF_ROOT = "/usr/sbin"


@functools.cache
def chromium() -> str | None:
    """The system's Chromium or Chrome, else the one that Playwright downloaded; None if Playwright cannot drive one."""
    if not driver_runs():
        return None
    return shutil.which("chromium") or shutil.which("google-chrome") or downloaded_chromium()


def driver_runs() -> bool:
    """Whether Playwright's driver starts: it needs a library that a minimal Debian lacks."""
    words = [sys.executable, "-m", "playwright", "--version"]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


def downloaded_chromium() -> str | None:
    """The Chromium that ``playwright install`` has put into the user's cache."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        path = play.chromium.executable_path
    return path if Path(path).exists() else None


def curl() -> str | None:
    """A curl that knows ``--json``, as the README's commands ask: 7.82 or newer."""
    path = shutil.which("curl")
    if path and "--json" in subprocess.run([path, "--help", "all"], check=False, capture_output=True, text=True).stdout:
        return path
    return None


def nginx() -> str | None:
    """nginx, which Debian puts beside the programs of root."""
    return shutil.which("nginx", path=f"{os.environ['PATH']}:{PROGRAMS_OF_ROOT}")


def tsc() -> str | None:
    """The TypeScript compiler, where node is there to run what it compiles."""
    return shutil.which("tsc") if shutil.which("node") else None


def playwright_install() -> list[str]:
    """The command by which Playwright downloads its own Chromium; Ubuntu's package of it is a snap."""
    with_libraries = ["--with-deps"] if shutil.which("apt-get") else []
    return [sys.executable, "-m", "playwright", "install", *with_libraries, "chromium"]


class Need(NamedTuple):
    """A program that some tests run."""

    label: str
    find: Callable[[], str | None]
    packages: tuple[str, ...]  # of Debian


NEEDS = {
    "chromium": Need("Chromium", chromium, ("chromium", "libatomic1")),
    "cc": Need("a C compiler", lambda: shutil.which("cc"), ("gcc", "libc6-dev")),
    "openssl": Need("openssl", lambda: shutil.which("openssl"), ("openssl",)),
    "nginx": Need("nginx", nginx, ("nginx-light",)),
    "tsc": Need("node and the TypeScript compiler", tsc, ("nodejs", "node-typescript")),
    "pdflatex": Need(
        "LaTeX",
        lambda: shutil.which("pdflatex"),
        ("texlive-latex-base", "texlive-latex-recommended", "texlive-science"),
    ),
    "npm": Need("npm", lambda: shutil.which("npm"), ("npm",)),
    "curl": Need("curl 7.82 or newer", curl, ("curl",)),
}


def missing() -> list[str]:
    """The names of the needs that this machine does not have."""
    return [name for name, need in NEEDS.items() if not need.find()]


def required() -> bool:
    """Whether leaving out a test is an error."""
    return os.environ.get("SUPERARM_REQUIRE_ALL", "0") not in ("", "0")


def commands(names: list[str]) -> list[list[str]]:
    """The commands that install these needs on Debian or Ubuntu."""
    by_playwright = "chromium" in names and "ubuntu" in distribution()
    packages = {package for name in names for package in NEEDS[name].packages} - (
        {"chromium"} if by_playwright else set()
    )
    apt_get = [["update", "-qq"], ["install", "-qq", "--yes", "--no-install-recommends", *sorted(packages)]]
    return [["apt-get", *words] for words in apt_get] + ([playwright_install()] if by_playwright else [])


def distribution() -> list[str]:
    """This system's name and the names of the systems it derives from, such as ``["ubuntu", "debian"]``."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return []
    return [release.get("ID", ""), *release.get("ID_LIKE", "").split()]


def how_to_install(names: list[str]) -> str:
    """The command for a person to type."""
    if "debian" in distribution():
        return "make system" if os.geteuid() == 0 else "sudo make system"
    programs = [NEEDS[name].label for name in names if name != "chromium"]
    browser = [" ".join(playwright_install())] if "chromium" in names else []
    return "; ".join([*(f"install {program}" for program in programs), *browser])


def install(names: list[str]) -> None:
    """Run the commands; print their output only if one fails."""
    print(f"Installing for the tests: {', '.join(NEEDS[name].label for name in names)}", flush=True)
    for words in commands(names):
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"  # dpkg needs them; a plain `su` leaves them out
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": path}
        done = subprocess.run(
            words, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            print(f"{' '.join(words)} failed:\n{done.stdout[-2000:]}")


def install_early() -> int:
    """Install what does not need Playwright, before it is there; what is missing afterwards is left to ``main``."""
    missing_ones = [name for name, need in NEEDS.items() if name != "chromium" and not need.find()]
    if "ubuntu" not in distribution() and not (shutil.which("chromium") or shutil.which("google-chrome")):
        missing_ones.append("chromium")
    if missing_ones and "debian" in distribution() and os.geteuid() == 0:
        install(missing_ones)
    return 0


def main(optional: bool) -> int:
    names = missing()
    if names and "debian" in distribution() and os.geteuid() == 0:
        install(names)
        chromium.cache_clear()
        names = missing()
    if not names:
        return 0
    labels = ", ".join(NEEDS[name].label for name in names)
    print(f"Missing for some of the tests: {labels}. To install it: {how_to_install(names)}")
    return 0 if optional and not required() else 1


if __name__ == "__main__":
    sys.exit(install_early() if "--early" in sys.argv[1:] else main(optional="--optional" in sys.argv[1:]))

"""Run make targets in minimal Debians that are made for the purpose and removed afterwards.

    make pristine                                     make demo and make test, as root, in Debian 12 and then in stable
    make pristine PRISTINE_TARGETS=demo               other targets; words with = are handed to make as variables
    make pristine PRISTINE_USER=tester                as a user who cannot install packages
    make pristine PRISTINE_SUITE=bookworm             one release only; several are given with spaces between them
    make pristine PRISTINE_CACHE=/tmp/pristine        keep the bare system there, as a tar file for the next time

Debian 12 (bookworm) has the oldest Python that is supported, 3.11.2.

The system is debootstrap's smallest one with python3, python3-venv, make, git and ca-certificates. Into it goes a clone
of the committed HEAD, and how this machine reaches the package registries: the settings of apt and pip, proxies,
certificates, name servers. The targets run in mount and process namespaces of their own, so that no mount and no
process outlives them. Needs root and about 4 GB below TMPDIR.
"""

import ast
import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PACKAGES = "python3,python3-venv,make,git,ca-certificates"
REPOSITORY = Path(__file__).resolve().parents[2]
TAKEN_OVER = re.compile(r"PIP_.*|UV_.*|\w+_proxy|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE", re.IGNORECASE)
"""Variables of the environment that say how this machine reaches the registries."""


def say(text: str) -> None:
    print(f"pristine: {text}", flush=True)


def output(*words: str | Path) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def run(*words: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command quietly; if it fails, show what it printed and end."""
    done = subprocess.run(words, check=False, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, words))} failed:\n{done.stdout[-3000:]}")


def run_inside(root: Path, *words: str | Path) -> None:
    run("chroot", root, *words, env=environment(Path("/root")))


def environment(home: Path) -> dict[str, str]:
    """All variables that commands inside see."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", **taken_over()}


def setting(name: str, default: str) -> str:
    return os.environ.get(f"PRISTINE_{name}") or default


def make_system(root: Path, suite: str, cache: str) -> None:
    """Debootstrap into this directory, or unpack what an earlier run has kept."""
    kept = Path(cache) / f"{suite}.tar"
    if cache and kept.exists():
        say(f"unpacking {kept}")
        run("tar", "--extract", "--numeric-owner", "--file", kept, "--directory", root)
        return
    if not shutil.which("debootstrap"):
        say("installing debootstrap with apt-get")
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-qq", "--yes", "--no-install-recommends", "debootstrap")
    say(f"making a minimal Debian ({suite})")
    run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, root, *mirror())
    if cache:
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".partial")
        run("tar", "--create", "--numeric-owner", "--file", partial, "--directory", root, ".")
        partial.rename(kept)


def mirror() -> list[str]:
    """The Debian archive that this machine uses, if it uses one; without it, debootstrap has a default."""
    lines = output("apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages")
    return [line.split()[2] for line in lines.splitlines() if line.startswith("Debian Debian ")][:1]


def taken_over() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if TAKEN_OVER.fullmatch(name)}


def pip_settings() -> configparser.ConfigParser:
    """What all configuration files of pip come to; variables of the environment are taken over as such."""
    parser = configparser.ConfigParser(interpolation=None)
    for line in output(sys.executable, "-m", "pip", "config", "list").splitlines():
        key, value = line.split("=", 1)
        section, name = key.split(".", 1)
        if section != ":env:":
            parser.read_dict({section: {name: ast.literal_eval(value)}})
    return parser


def copy_settings(root: Path) -> None:
    """How this machine reaches the registries: name servers, certificates, the settings of apt and pip."""
    for name in ("/etc/resolv.conf", "/etc/hosts"):
        copy_file(Path(name), root)
    authorities = Path("/usr/local/share/ca-certificates")
    if authorities.exists():
        shutil.copytree(authorities, root / authorities.relative_to("/"), dirs_exist_ok=True)
        run_inside(root, "update-ca-certificates")
    dumped = output("apt-config", "dump").splitlines()
    acquire = [line for line in dumped if re.match(r"Acquire::(?!IndexTargets|CompressionTypes|Changelogs)", line)]
    (root / "etc/apt/apt.conf.d/90host").write_text("\n".join([*acquire, ""]))
    with (root / "etc/pip.conf").open("w") as file:
        pip_settings().write(file)


def copy_file(source: Path, root: Path) -> None:
    target = root / source.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copyfile(source, target)


def provide_named(root: Path) -> None:
    """Copy the files, and mount the directories, of this machine that those settings name."""
    settings = [root / name for name in ("etc/pip.conf", "etc/apt/apt.conf.d/90host", "etc/apt/sources.list")]
    texts = [*(path.read_text() for path in settings), *taken_over().values()]
    for path in sorted(
        {Path(name) for text in texts for name in re.findall(r"(?<![\w:/])(?:file:/*)?(/[\w./+-]+)", text)}
    ):
        if path.is_file():
            copy_file(path, root)
        elif path.is_dir():
            mount_directory(path.parent if path.name == "simple" else path, root)  # an index links to files beside it


def mount_directory(path: Path, root: Path) -> None:
    target = root / path.relative_to("/")
    if not target.exists():
        target.mkdir(parents=True)
        run("mount", "--bind", path, target)
        run("mount", "--options", "remount,bind,ro", target)


def clone(root: Path, user: str) -> Path:
    """A clone of the committed HEAD in the user's home; where it is, seen from inside."""
    if user != "root":
        run_inside(root, "useradd", "--create-home", user)
    home = Path("/root" if user == "root" else f"/home/{user}")
    head = output("git", "-C", REPOSITORY, "rev-parse", "HEAD").strip()
    outside = root / home.relative_to("/") / "superarm"
    run("git", "clone", "--quiet", "--no-hardlinks", REPOSITORY, outside)
    run("git", "-C", outside, "checkout", "--quiet", "--detach", head)
    run_inside(root, "chown", "--recursive", f"{user}:", home)
    say(f"testing commit {head[:12]}; changes that are not committed are not in it")
    return home / "superarm"


def run_targets(root: Path) -> int:
    """Inside the namespaces: mount, clone, run every target, and say how each ended."""
    user, targets = setting("USER", "root"), shlex.split(setting("TARGETS", "demo test"))
    run("mount", "-t", "proc", "proc", root / "proc")
    run("mount", "-t", "tmpfs", "tmpfs", root / "dev/shm")
    copy_settings(root)
    provide_named(root)
    directory = clone(root, user)
    failed = 0
    for target in (word for word in targets if "=" not in word):
        line = ["make", "-C", str(directory), target, *(word for word in targets if "=" in word)]
        say(f"as {user}: {shlex.join(line)}")
        began = time.monotonic()
        words = ["chroot", f"--userspec={user}:", root, *line]
        code = subprocess.run(words, check=False, env=environment(directory.parent)).returncode
        say(f"make {target} {'failed' if code else 'passed'} after {time.monotonic() - began:.0f} seconds")
        failed += code != 0
    return 1 if failed else 0


def main() -> int:
    if os.geteuid() != 0:
        sys.exit("make pristine mounts file systems and needs root; run: sudo make pristine")
    if "--inside" in sys.argv:
        return run_targets(Path(sys.argv[-1]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that the directory goes away
    codes = {suite: run_in(suite) for suite in shlex.split(setting("SUITE", "bookworm stable"))}
    say("; ".join(f"{suite} {'failed' if code else 'passed'}" for suite, code in codes.items()))
    return max(codes.values())


def run_in(suite: str) -> int:
    """Make a system of this release, run the targets in it, and remove it."""
    with tempfile.TemporaryDirectory(prefix="pristine-") as directory:
        root = Path(directory)
        root.chmod(0o755)
        make_system(root, suite, setting("CACHE", ""))
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return subprocess.run([*namespaces, sys.executable, __file__, "--inside", root], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

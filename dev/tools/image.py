"""Build the image of the service, and test it by running it.

    make image                                  build localhost/superarm with buildah
    make image-test                             run it with podman, and drive a decision through it
    make image IMAGE=registry.example/superarm  another name
    make image IMAGE_BASE=debootstrap           a minimal Debian as base, made here, if no registry can be reached
    make image IMAGE_ARGS='--build-arg BASE=docker.io/library/python:3.12-slim'

Without IMAGE_BASE, the base that the Containerfile names is taken, and the minimal Debian if it cannot be pulled. How
this machine reaches the package index (pip's settings, certificates, directories that they name) is mounted while the
image is built, and is not in the image. Needs root, buildah and, for the test, podman.
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pristine import mirror, output, pip_settings, run, taken_over

REPOSITORY = Path(__file__).resolve().parents[2]
CONTAINERFILE = REPOSITORY / "deploy" / "Containerfile"
MADE_BASE = "localhost/superarm-base"
PACKAGES = "python3,python3-venv,ca-certificates"


def say(text: str) -> None:
    print(f"image: {text}", flush=True)


def install(*programs: str) -> None:
    """Install programs that are missing, by apt-get."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        say(f"installing {', '.join(missing)} with apt-get")
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-qq", "--yes", "--no-install-recommends", *missing)


def named_base() -> str:
    """The base that the Containerfile names."""
    found = re.search(r"^ARG BASE=(\S+)", CONTAINERFILE.read_text(), re.MULTILINE)
    assert found
    return found[1]


def choose_base() -> str:
    base = os.environ.get("IMAGE_BASE", "")
    if base and base != "debootstrap":
        return base
    if not base:
        pulled = subprocess.run(
            ["timeout", "60", "buildah", "pull", "-q", named_base()], check=False, capture_output=True
        )
        if pulled.returncode == 0:
            return named_base()
        say(f"{named_base()} cannot be pulled")
    known = subprocess.run(["buildah", "inspect", "--type", "image", MADE_BASE], check=False, capture_output=True)
    if known.returncode:
        make_base()
    return MADE_BASE


def make_base() -> None:
    """A minimal Debian with Python, as an image."""
    say("making a minimal Debian")
    run("buildah", "commit", "-q", "--rm", import_debian(PACKAGES), MADE_BASE)


def import_debian(packages: str) -> str:
    """A new container of buildah with a minimal Debian and some of its packages: its name."""
    install("debootstrap")
    with tempfile.TemporaryDirectory(prefix="superarm-base-") as directory:
        run("debootstrap", "--variant=minbase", f"--include={packages}", "stable", directory, *mirror())
        for name in ("var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(Path(directory) / name, ignore_errors=True)
        container = output("buildah", "from", "scratch").strip()
        run("buildah", "add", "-q", container, directory, "/")
    return container


@contextlib.contextmanager
def registry_settings() -> Iterator[list[str]]:
    """Words for buildah that mount how this machine reaches the package index."""
    with tempfile.TemporaryDirectory(prefix="superarm-pip-") as directory:
        conf = Path(directory) / "pip.conf"
        with conf.open("w") as file:
            pip_settings().write(file)
        words = [f"--volume={conf}:/etc/pip.conf:ro"]
        texts = [conf.read_text(), *taken_over().values()]
        paths = {Path(name) for text in texts for name in re.findall(r"(?<![\w:/])(?:file:/*)?(/[\w./+-]+)", text)}
        for path in sorted(paths):
            shown = path.parent if path.name == "simple" else path  # an index links to files beside it
            if shown.exists():
                words.append(f"--volume={shown}:{shown}:ro")
        yield words


def build(image: str) -> None:
    install("buildah")
    base = choose_base()
    say(f"building {image} on {base}")
    with registry_settings() as words:
        more = shlex.split(os.environ.get("IMAGE_ARGS", ""))
        line = ["buildah", "build", "--format=docker", "--isolation=chroot", f"--build-arg=BASE={base}", *words, *more]
        done = subprocess.run([*line, f"--tag={image}", f"--file={CONTAINERFILE}", REPOSITORY], check=False)
    if done.returncode:
        sys.exit("image: the build failed")
    size = output("buildah", "inspect", "--type=image", "--format={{.FromImageID}}", image).strip()
    say(f"built {image} ({size[:12]})")


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("image: buildah changes root file systems and needs root; run: sudo make image")
    build(os.environ.get("IMAGE") or "localhost/superarm:latest")

"""Run the image of the service as an operator would, with a read-only root file system, and get a decision of it.

    make image-test        after make image; needs root and podman

It prints how long after its start the container answered the first decision.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

from image import install, output, say

PODMAN = ["podman", "--runtime", os.environ.get("IMAGE_RUNTIME") or "runc"]
LIMITS = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
"""The default limits of podman are higher than a container may set in which it runs itself."""

HARDENED = ["--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges", *LIMITS]
SPEC = {"arms": ["a", "b", "c", "d"], "items": ["x", "y"], "k": 2}


class Client:
    """Calls with a key to the service in the container."""

    def __init__(self, port: int, key: str) -> None:
        self._url, self._key = f"http://127.0.0.1:{port}", key

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", "authorization": f"Bearer {self._key}"}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except OSError:
            return 0, None

    def wait(self) -> None:
        limit = time.monotonic() + 120
        while self.call("GET", "/health/ready")[0] != 200:
            if time.monotonic() > limit:
                sys.exit("image-test: FAILED: the service is not ready after two minutes")
            time.sleep(0.02)


def check(fact: bool, said: str) -> None:
    if not fact:
        sys.exit(f"image-test: FAILED: {said}")
    say(f"ok: {said}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(image: str, name: str, port: int, key: str) -> Client:
    settings = [f"--env=SUPERARM_SERVE_PORT={port}", f"--env=SUPERARM_SERVE_ADMIN_KEY={key}"]
    output(
        *PODMAN, "run", "-d", f"--name={name}", "--network=host", *HARDENED, f"--volume={name}:/data", *settings, image
    )
    return Client(port, key)


def test(image: str, name: str) -> None:
    key = output(*PODMAN, "run", "--rm", "--network=host", *HARDENED, image, "keys", "new").strip().splitlines()[-1]
    began = time.monotonic()
    client = start(image, name, free_port(), key)
    started = time.monotonic()
    client.wait()
    ready = time.monotonic()
    check(client.call("PUT", "/v1/problems/p", SPEC)[0] == 201, "a problem is created")
    status, decision = client.call("POST", "/v1/problems/p/decisions", {"id": "d"})
    decided = time.monotonic()
    check(status == 201 and len(decision["arms"]) == 2, "a decision is made")
    cpu = output(*PODMAN, "exec", name, "cat", "/proc/1/stat").split()
    ticks = os.sysconf("SC_CLK_TCK")
    say(
        f"podman took {started - began:.2f} s; after it, ready in {ready - started:.2f} s, first decision in "
        f"{decided - started:.2f} s; processor time of the service {(int(cpu[13]) + int(cpu[14])) / ticks:.2f} s"
    )
    status, told = client.call("POST", "/v1/problems/p/decisions/d/feedback", {"outcome": [[1, 0], [0, 1]]})
    check(status == 200 and told["applied"], "feedback is accepted")
    check(client.call("GET", "/health/ready")[0] == 200, "it is ready")
    log = output(*PODMAN, "logs", name)
    check("compiling" not in log, "no kernel was compiled: all were in the image")
    healthy = subprocess.run([*PODMAN, "healthcheck", "run", name], check=False).returncode
    check(healthy == 0, "the image's health check passes")
    check(output(*PODMAN, "exec", name, "id", "-u").strip() == "10001", "its user is not root")
    touched = subprocess.run([*PODMAN, "exec", name, "touch", "/opt/superarm/x"], check=False, capture_output=True)
    check(touched.returncode != 0, "its root file system is read-only")
    output(*PODMAN, "stop", "--time=40", name)
    code = output(*PODMAN, "inspect", "--format={{.State.ExitCode}}", name).strip()
    check(code == "0", f"it stops by itself on SIGTERM (exit code {code})")
    output(*PODMAN, "rm", name)
    client = start(image, name, free_port(), key)
    client.wait()
    check(
        client.call("GET", "/v1/problems/p/decisions/d")[1]["state"] == "complete",
        "another container knows the decision",
    )
    output(*PODMAN, "stop", "--time=40", name)


def main() -> int:
    install("podman", "runc")
    name = f"superarm-test-{os.getpid()}"
    try:
        test(os.environ.get("IMAGE") or "localhost/superarm:latest", name)
    finally:
        subprocess.run([*PODMAN, "rm", "-f", "-i", name], check=False, capture_output=True)
        subprocess.run([*PODMAN, "volume", "rm", "-f", name], check=False, capture_output=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

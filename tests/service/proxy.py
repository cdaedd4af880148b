"""A real nginx on loopback, with the configuration of deploy/nginx."""

import re
import subprocess
import time
from pathlib import Path

import httpx

from tests.system_packages import nginx

from .running import free_port

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "nginx" / "workers.conf"


class Nginx:
    """nginx in front of workers at these ports."""

    def __init__(self, home: Path, ports: list[int]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        block = CONFIGURATION.read_text()
        servers = "".join(f"    server 127.0.0.1:{port} max_fails=1 fail_timeout=5s;\n" for port in ports)
        block = re.sub(r"(    server 127\.0\.0\.1:\d+ max_fails=1 fail_timeout=5s;\n)+", servers, block)
        block = block.replace("listen 127.0.0.1:8000;", f"listen 127.0.0.1:{self.port};")
        assert all(str(port) in block for port in (*ports, self.port)), block
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "\n".join(f"{kind}_temp_path {home}/{kind};" for kind in kinds)
        (home / "tenants.map").write_text("")
        text = f"daemon off; pid {home}/pid; error_log {home}/error.log; events {{}}\n"
        text += f"http {{ access_log off;\n{places}\n{block} }}\n"
        (home / "nginx.conf").write_text(f"master_process off;\n{text}")
        words = [nginx(), "-p", str(home), "-c", str(home / "nginx.conf"), "-e", str(home / "error.log")]
        self._process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        self.pid = self._process.pid
        for _ in range(200):
            assert self._process.poll() is None, (home / "error.log").read_text()
            try:
                httpx.get(f"{self.url}/health/live", timeout=5.0)
            except httpx.TransportError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError((home / "error.log").read_text())

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(10)

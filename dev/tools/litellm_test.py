"""The routing strategy of examples/litellm_router.py with litellm itself, local stand-ins for endpoints and a service.

``make litellm-test`` runs this. litellm, of 340 MB, has an environment of its own. Two processes of a router share what
they learn; one that starts after both have ended begins with it; failed calls are not held against a deployment.
"""

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import superarm as sa
from tests.service.running import Server

ROOT, CALLS = Path(__file__).parents[2], 40


class Standin(http.server.BaseHTTPRequestHandler):
    """Model "good" answers in full, the answer of "short" is cut off, and "down" fails."""

    def do_POST(self) -> None:
        model = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"]
        choice = {"index": 0, "message": {"role": "assistant", "content": "4"}}
        choice["finish_reason"] = "length" if model == "short" else "stop"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "x", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}
        data = json.dumps({**body, "usage": usage}).encode()
        self.send_response(503 if model == "down" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: object) -> None:
        pass


def main(environment: Path) -> None:
    standin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Standin)
    threading.Thread(target=standin.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{standin.server_port}"

    def start(url: str, calls: int) -> subprocess.Popen[bytes]:
        words = [environment.resolve() / "bin" / "python", "-m", "dev.tools.drive_litellm", url, endpoint, str(calls)]
        alone = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # it fetches prices otherwise
        return subprocess.Popen(words, cwd=ROOT, env=alone, stdout=subprocess.PIPE)

    def models(process: subprocess.Popen[bytes]) -> list[str]:
        said = process.communicate(timeout=600)[0]
        assert process.returncode == 0, "a router failed"
        return list(json.loads(said.splitlines()[-1]))

    with tempfile.TemporaryDirectory() as folder, Server(f"{folder}/log.db") as server:
        agent = sa.connect(server.url).create("chat", ["short", "good", "down"], ["good"], 1, seed=0)
        both = [models(one) for one in [start(server.url, CALLS), start(server.url, CALLS)]]
        pulls = {row["arm"]: row["pulls"] for row in agent.statistics()}
        assert pulls["short"] + pulls["good"] >= 2 * CALLS - 2, f"both tell the same problem: {pulls}"
        assert pulls["down"] == 0, f"failed calls are not held against a deployment: {pulls}"
        assert all(one[-20:].count("good") >= 15 for one in both), both
        again = models(start(server.url, 15))
        assert again.count("good") >= 11, f"a process begins with what others learnt: {again}"
    print(f"litellm: processes share what they learn ({pulls}), and one that starts anew begins with it")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Generate a client from the OpenAPI document of a running service, and drive the service with it.

``make generated-client`` runs this. The generator, openapi-python-client, has an environment of its own.
"""

import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from tests.service.running import Server

HERE = Path(__file__).parent
CONFIGURATION = """\
content_type_overrides:
  application/x-ndjson: application/octet-stream
"""


def generate(environment: Path, url: str, into: Path) -> None:
    """Write the package ``generated`` into a directory; anything that the generator leaves out is an error."""
    with urllib.request.urlopen(f"{url}/openapi.json") as reply:
        described = json.load(reply)
    (into / "openapi.json").write_text(json.dumps(described))
    (into / "configuration.yaml").write_text(CONFIGURATION)
    words = ["generate", "--path", "openapi.json", "--config", "configuration.yaml", "--meta", "none"]
    program = environment.resolve() / "bin" / "openapi-python-client"
    done = subprocess.run(
        [program, *words, "--output-path", "generated"], check=False, capture_output=True, text=True, cwd=into
    )
    said = done.stdout + done.stderr
    if done.returncode or "Unable to" in said or "removal of" in said:
        sys.exit(said)
    expected = {one["operationId"] for methods in described["paths"].values() for one in methods.values()}
    found = {path.stem for path in (into / "generated" / "api" / "default").glob("*.py")} - {"__init__"}
    if expected != found:
        sys.exit(f"operations without a function: {sorted(expected - found)}")
    print(f"generated {len(found)} operations")


def main(environment: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        into = Path(name)
        with Server(str(into / "log.db")) as server:
            generate(environment, server.url, into)
            program = environment.resolve() / "bin" / "python"
            subprocess.run([program, HERE / "drive_generated_client.py", server.url], check=True, cwd=into)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

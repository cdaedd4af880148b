"""Draw docs/console.png: the console of ``superarm serve --demo`` after some time, in a browser.

``python -m dev.tools.console_picture`` needs Chromium, compiles what the demonstration runs, and takes two minutes.
"""

import socket
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from dev.tools.package_examples import wait_for
from tests.system_packages import chromium

PICTURE = Path(__file__).parents[2] / "docs" / "console.png"
SECONDS = 120.0
"""How long visitors come before the picture is taken."""
WINDOW = {"width": 1200, "height": 940}


def main() -> None:
    """Start the demonstration, wait, and take the picture."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = subprocess.Popen(
        [Path(sys.executable).parent / "superarm", "serve", "--demo", "--port", str(port)],
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/health/ready", 300.0)
        time.sleep(SECONDS)
        take_picture(f"http://127.0.0.1:{port}/")
    finally:
        service.terminate()
        service.wait()


def take_picture(address: str) -> None:
    """What a browser shows at this address, without scrolling."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW, color_scheme="light")
        page.goto(address, wait_until="load")
        page.locator("svg").first.wait_for()
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()

"""``superarm serve --demo``: visitors come by themselves, and the console shows what they did."""

import os
import tempfile
import time
from pathlib import Path

import httpx

from superarm.service.demo import ARTICLES, EDITED, PROBLEM, READERS, make_readership

from .running import Server, invoke


def test_the_demo_serves_visitors(tmp_path):
    before = set(Path(tempfile.gettempdir()).glob("superarm-demo-*"))
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    served = Server(str(tmp_path / "given.db"), "--demo", env={**env, "NUMBA_CACHE_DIR": str(kernels)})
    with served as server, httpx.Client(base_url=server.url) as http:
        asked, limit = 0, time.monotonic() + 60
        while asked < EDITED + 20 and time.monotonic() < limit:
            time.sleep(0.1)
            found = http.get(f"/v1/problems/{PROBLEM}")
            asked = found.json()["decisions"] if found.status_code == 200 else 0
        page = http.get("/", params={"problem": PROBLEM}).text
        arms = http.get(f"/v1/problems/{PROBLEM}/arms", params={"limit": 100}).json()["arms"]
    assert asked >= EDITED + 20
    assert sorted(arm["arm"] for arm in arms) == sorted(make_readership(0))
    assert sum(arm["pulls"] for arm in arms) > 0
    assert "What does it earn" in page
    assert list(kernels.iterdir()) == [], "nobody has to wait for kernels"
    assert set(Path(tempfile.gettempdir()).glob("superarm-demo-*")) <= before
    done = invoke("verify", "--db", server.db)
    assert done.exit_code == 0, done.stderr


def test_readers_like_what_the_headlines_say_they_like():
    click = make_readership(0)
    for interest, headlines in ARTICLES.items():
        for headline in headlines:
            by_interest = dict(zip(READERS, click[headline], strict=True))
            liked = by_interest.pop(interest, 1.0)
            assert liked > max(by_interest.values())
    assert all((make_readership(0)[name] == row).all() for name, row in click.items())


def test_the_demo_stays_on_loopback():
    done = invoke("serve", "--demo", "--host", "0.0.0.0")
    assert done.exit_code == 2
    assert "127.0.0.1" in done.stderr

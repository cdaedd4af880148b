"""The service behind a real nginx, under a path of its own, with keys."""

import subprocess
import time

import httpx
import pytest

from tests.system_packages import nginx

from .running import Server, free_port, invoke

pytestmark = [pytest.mark.needs("nginx"), pytest.mark.slow("nginx")]

CONFIGURATION = """
daemon off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto https;
    server {{
        listen 127.0.0.1:{port};
        location {root}/ {{ proxy_pass http://127.0.0.1:{behind}{kept}; proxy_buffering off; }}
        location = {root} {{ proxy_pass http://127.0.0.1:{behind}; }}
    }}
}}
"""


@pytest.fixture(params=["the proxy takes the path off", "the proxy forwards the whole path"])
def proxied(request, tmp_path):
    """A client of nginx, a key, and the service behind it."""
    db = str(tmp_path / "log.db")
    words = ["--db", db, "--scope", "admin"]
    key = invoke("keys", "create", *words).stdout.strip()
    port = free_port()
    with Server(db, "--root-path", "/bandits/", "--rate", "1000") as server:
        kept = "/" if request.param == "the proxy takes the path off" else ""
        text = CONFIGURATION.format(home=tmp_path, port=port, behind=server.port, root="/bandits", kept=kept)
        (tmp_path / "nginx.conf").write_text(text)
        process = subprocess.Popen([nginx(), "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "error.log")])
        url = f"http://127.0.0.1:{port}"
        limit = time.monotonic() + 20
        while not (tmp_path / "nginx.pid").exists() and time.monotonic() < limit:
            time.sleep(0.02)
        try:
            with httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}) as http:
                yield http, key, server
        finally:
            process.terminate()
            process.wait(20)


def test_operations_and_the_console_work_under_the_path(proxied):
    http, key, server = proxied
    made = http.put("/bandits/v1/problems/ads", json={"arms": ["a", "b", "c"], "k": 2})
    assert made.status_code == 201, made.text
    assert http.post("/bandits/v1/problems/ads/decisions", json={"id": "d"}).status_code == 201
    assert http.post("/bandits/v1/problems/ads/decisions/d/feedback", json={"feedback": []}).status_code == 200
    assert http.get("/bandits/openapi.json").json()["servers"] == [{"url": "/bandits"}]
    assert http.get("/v1/problems").status_code == 404  # nginx's own
    to_root = http.get("/bandits", follow_redirects=False)
    assert (to_root.status_code, to_root.headers["location"]) == (308, "/bandits/")

    entered = http.post("/bandits/login", data={"key": key}, follow_redirects=False)
    assert entered.headers["location"] == "./"
    cookie = entered.headers["set-cookie"]
    assert "Path=/bandits/;" in cookie
    assert "Secure" in cookie  # nginx says that the client came by HTTPS
    page = http.get("/bandits/", headers={"cookie": cookie.partition(";")[0]})
    assert page.status_code == 200
    for name in ("console.css", "console.js"):
        assert f'"{name}"' in page.text  # relative to /bandits/
        assert http.get(f"/bandits/{name}").status_code == 200
    assert server.process.poll() is None


def test_an_encoded_slash_passes_a_proxy_that_forwards_the_path_as_it_came(proxied, request):
    """nginx decodes it if its ``proxy_pass`` has a path, ``/`` for instance; deploy/nginx/path.conf says so."""
    http, _, _ = proxied
    assert http.put("/bandits/v1/problems/ads", json={"arms": ["a/1", "b"], "k": 1}).status_code == 201
    assert http.post("/bandits/v1/problems/ads/decisions", json={"id": "a/b"}).status_code == 201
    kept = "forwards" in request.node.callspec.id
    for path in ("/bandits/v1/problems/ads/decisions/a%2Fb", "/bandits/v1/problems/ads/decisions/a%2fb"):
        assert http.get(path).status_code == (200 if kept else 404)

"""OpenFeature's own SDKs for Python and JavaScript, with their OFREP providers, decide from published tables."""

import json
import os
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

import superarm as sa
from superarm.service.http.service import make_key
from superarm.service.server import open_store

from .running import Server
from .test_tables import ARMS, spec

NODE = """
import { OpenFeature } from "@openfeature/server-sdk";
import { OFREPProvider } from "@openfeature/ofrep-provider";
const { SUPERARM_URL: baseUrl, SUPERARM_KEY: key } = process.env;
await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl, headers: [["Authorization", `Bearer ${key}`]] }));
const client = OpenFeature.getClient();
const ask = (flag, context) => client.getObjectDetails(flag, { arms: ["fallback"] }, context);
const found = [];
for (let n = 0; n < 20; n++) found.push(await ask("p", { targetingKey: `visit-${n}-é`, segment: "walkers" }));
found.push(await ask("nothing", { targetingKey: "x" }), await ask("p", { segment: "walkers" }));
console.log(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, sa.Table]]:
    """The address of a service, a key, and the table of its problem."""
    db = str(tmp_path_factory.mktemp("ofrep") / "log.db")
    store = open_store(db, serving=False)
    (admin, row), (key, other) = make_key("shop", ("admin",)), make_key("shop", ("decide",))
    store.put_key(row)
    store.put_key(other)
    store.close()
    with Server(db) as server, httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {admin}"}) as http:
        assert http.put("/v1/problems/p", json=spec(control=0.1)).status_code == 201
        assert http.put("/v1/problems/asked", json=spec(serve="decisions")).status_code == 201
        yield server.url, key, sa.Table.load(http.get("/v1/problems/p/table").content)


def expected(table: sa.Table) -> list[list]:
    found = [table.decide(f"visit-{n}-é", "walkers") for n in range(20)]
    return [[{"arms": list(one.arms)}, f"{one.version}:{one.row}", one.row] for one in found]


def test_the_python_sdk_decides(served):
    url, key, table = served
    api.set_provider(OFREPProvider(url, headers_factory=lambda: {"Authorization": f"Bearer {key}"}))
    client, default = api.get_client(), {"arms": ["fallback"]}

    def ask(flag, id, **context):
        return client.get_object_details(flag, default, EvaluationContext(id, context))

    found = [ask("p", f"visit-{n}-é", segment="walkers") for n in range(20)]
    assert [[one.value, one.variant, one.flag_metadata["row"]] for one in found] == expected(table)
    assert {one.reason for one in found} == {"SPLIT"}
    refused = [ask("nothing", "x"), ask("p", None, segment="walkers"), ask("asked", "x")]
    assert [one.value for one in refused] == [default] * 3
    assert [one.error_code.value for one in refused] == ["FLAG_NOT_FOUND", "TARGETING_KEY_MISSING", "GENERAL"]
    assert 'change the settings to "serve": "table"' in refused[2].error_message
    api.shutdown()


@pytest.mark.slow("packages of npm")
@pytest.mark.needs("npm")
def test_the_javascript_sdk_decides(served, tmp_path):
    url, key, table = served
    (tmp_path / "package.json").write_text('{"type": "module"}')
    packages = ["@openfeature/server-sdk@1.23.0", "@openfeature/ofrep-provider@0.1.3"]
    done = subprocess.run(["npm", "install", "--no-audit", *packages], cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    (tmp_path / "ask.mjs").write_text(NODE)
    variables = {**os.environ, "SUPERARM_URL": url, "SUPERARM_KEY": key}
    done = subprocess.run(["node", tmp_path / "ask.mjs"], env=variables, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *found, unknown, nobody = json.loads(done.stdout)
    assert [[one["value"], one["variant"], one["flagMetadata"]["row"]] for one in found] == expected(table)
    assert [unknown["errorCode"], nobody["errorCode"]] == ["FLAG_NOT_FOUND", "TARGETING_KEY_MISSING"]


def test_what_providers_get_wrong_is_answered_in_the_words_of_the_protocol(served):
    url, key, _ = served
    path, authorized = f"{url}/ofrep/v1/evaluate/flags/p", {"Authorization": f"Bearer {key}"}

    def post(body, **headers):
        return httpx.post(path, content=body, headers={"content-type": "application/json", **authorized, **headers})

    number = post(b'{"context": {"targetingKey": 17}}')
    assert (number.status_code, number.json()["errorCode"]) == (400, "INVALID_CONTEXT")
    assert "17 is not a string" in number.json()["errorDetails"]
    assert post(b"{").json()["errorCode"] == "PARSE_ERROR"
    assert post(b'{"context": {"targetingKey": "x"}}', Authorization="Bearer wrong").status_code == 401
    nobody = post(b'{"context": {"targetingKey": "x"}}').json()
    assert nobody["metadata"]["segment"] == ""
    assert set(nobody["value"]["arms"]) <= set(ARMS)


def test_nothing_is_written_by_an_evaluation(served):
    url, key, table = served
    body = {"context": {"targetingKey": "x"}}
    for _ in range(5):
        assert httpx.post(f"{url}/ofrep/v1/evaluate/flags/p", json=body, headers={"Authorization": f"Bearer {key}"})
    again = httpx.get(f"{url}/v1/problems/p/table", headers={"Authorization": f"Bearer {key}"})
    assert sa.Table.load(again.content) == table

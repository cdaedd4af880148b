"""Metrics over all workers, the dashboard and alerts that use them, and the audit."""

import asyncio
import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from superarm.service.application import application
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .running import invoke

DEPLOY = Path(__file__).parents[2] / "deploy" / "observability"
SPEC = {"arms": ["a", "b", "c"], "items": ["x"], "k": 2, "settings": {"policy": {"name": "kl_ucb"}}}


def read_metrics(text):
    """All samples, by name and labels."""
    families = text_string_to_metric_families(text)
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def value_of(metrics, name, **labels):
    return metrics[(name, *sorted(labels.items()))]


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """The metrics of a service that has answered every kind of request that counts."""

    async def run():
        app = application(Sqlite(tmp_path_factory.mktemp("metrics") / "log.db"))
        async with serving(app) as http:
            await http.put("/v1/problems/p", json=SPEC)
            await http.post("/v1/problems/p/decisions", json={"id": "d"})
            await http.post("/v1/problems/p/decisions", json={"id": "e"})
            await http.post("/v1/problems/p/decisions/d/feedback", json={"outcome": [[1], [0.5]]})
            return (await http.get("/metrics")).text

    return read_metrics(asyncio.run(run()))


def test_metrics_say_what_happened(metrics):
    name = {"tenant": "default", "problem": "p"}
    assert value_of(metrics, "superarm_problem_decisions_total", **name) == 2
    assert value_of(metrics, "superarm_problem_pending", **name) == 1
    assert value_of(metrics, "superarm_problem_finished_total", how="complete", **name) == 1
    assert value_of(metrics, "superarm_problem_reward_mean", of="policy", **name) == pytest.approx(1.0)
    assert value_of(metrics, "superarm_events_total") == 4
    assert value_of(metrics, "superarm_commit_seconds_count") == 4
    path = "/v1/problems/{name}/decisions"
    assert value_of(metrics, "superarm_request_seconds_count", tenant="default", method="POST", path=path) == 2


def expressions():
    for group in yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("title", "expression"), list(expressions()))
def test_the_dashboard_and_the_alerts_use_metrics_and_labels_that_exist(metrics, title, expression):
    found = re.findall(r"(superarm_\w+)(?:\{(.*?)\}(?=[\[)\s]|$))?", expression)
    assert found
    for name, selectors in found:
        labels = [dict(key[1:]) for key in metrics if key[0] == name]
        assert labels, f"{name} does not exist"
        for label, operator, value in re.findall(r'(\w+)(=~|=)"([^"]*)"', selectors):
            assert all(label in have for have in labels), f"{name} has no label {label}"
            if operator == "=":
                assert any(have[label] == value for have in labels), f"{name} has no {label}={value}"


def test_every_alert_says_what_happened_and_what_to_do():
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    assert len(group["rules"]) >= 8
    assert all(len(rule["annotations"][part]) > 10 for rule in group["rules"] for part in ("summary", "description"))


def test_the_audit_names_changes_keys_and_who_made_them(tmp_path):
    db = str(tmp_path / "log.db")
    admin = invoke("keys", "create", "--db", db, "--scope", "admin", "--tenant", "shop").stdout.strip()
    reader = invoke("keys", "create", "--db", db, "--scope", "read", "--tenant", "shop").stdout.strip()
    stranger = invoke("keys", "create", "--db", db, "--scope", "admin", "--tenant", "other").stdout.strip()

    async def run():
        async with serving(application(Sqlite(Path(db)))) as http:

            def headers(key):
                return {"authorization": f"Bearer {key}"}

            await http.put("/v1/problems/p", json=SPEC, headers=headers(admin))
            await http.patch("/v1/problems/p/settings", json={"explore": 0.25}, headers=headers(admin))
            await http.post("/v1/problems/p/arms", json={"add": ["d"], "retire": ["a"]}, headers=headers(admin))
            await http.put("/v1/problems/q", json=SPEC, headers=headers(stranger))
            whole = (await http.get("/v1/audit", headers=headers(admin))).json()
            page = (await http.get("/v1/audit?problem=p&offset=1&limit=1", headers=headers(admin))).json()
            refused = await http.get("/v1/audit", headers=headers(reader))
            return whole, page, refused.status_code

    whole, page, refused = asyncio.run(run())
    assert refused == 403
    assert [entry["what"] for entry in whole["entries"]] == ["arms", "settings", "created", *["key created"] * 2]
    by = {entry["by"] for entry in whole["entries"] if entry["problem"] == "p"}
    assert by == {admin.split("_")[1]}
    assert whole["entries"][0]["details"] | {"added": ["d"], "n_retired": 1} == whole["entries"][0]["details"]
    assert whole["entries"][1]["details"]["settings"]["explore"] == 0.25
    assert (page["total"], [entry["what"] for entry in page["entries"]]) == (3, ["settings"])

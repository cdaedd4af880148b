"""The OpenAPI document is true: schemathesis, by example, by fuzzing and by state, finds nothing to object to.

``make fuzz`` runs these tests with more examples, and with every boundary value of every schema, for a given time.
"""

import json
import os
import time
from collections import Counter

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from superarm.service.http.openapi import document
from superarm.service.http.operations import OPERATIONS

from .running import Server

pytest_plugins = ["schemathesis.pytest.plugin"]  # switched off elsewhere: it takes a second to import
pytestmark = pytest.mark.slow("fuzzing")

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SECONDS = float(os.environ.get("SUPERARM_FUZZ", "0")) / 2
"""How long to go on, half of the time; 0 for the few examples of ``make test-all``."""
THOROUGH = SECONDS > 0.0
PHASES = {"coverage": {"enabled": THOROUGH}}  # boundary values: thousands of calls
EXAMPLES = 50 if THOROUGH else 6
LIMITS = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


class Budget:
    """Gives every operation its share of the time; what comes later is counted, and not tried."""

    def __init__(self, seconds: float, n_parts: int) -> None:
        self._share, self._ends = seconds / n_parts, dict[str, float]()
        self.tried, self.left_out = Counter(), Counter()

    def allows(self, part: str) -> bool:
        """Whether another case of an operation is tried."""
        end = self._ends.setdefault(part, time.monotonic() + self._share)
        allowed = not THOROUGH or time.monotonic() < end
        (self.tried if allowed else self.left_out)[part] += 1
        return allowed


budget = Budget(SECONDS, 2 * len(OPERATIONS))


@pytest.fixture(scope="module", autouse=True)
def said_what_was_tried(request):
    yield
    if THOROUGH:
        tried, left = budget.tried.total(), budget.left_out.total()
        said = f"{tried} cases tried, {left} of {len(budget.left_out)} operations left out for lack of time"
        request.config.get_terminal_writer().line(f"\n{said}")


@pytest.fixture(scope="module")
def http(service):
    with httpx.Client(base_url=service.url, timeout=60.0) as client:
        yield client


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Server(str(tmp_path_factory.mktemp("openapi") / "log.db")) as server:
        body = {"arms": ["ad-1", "ad-2", "ad-3", "ad-4"], "items": ["sport", "news"], "k": 2}
        body["settings"] = {"policy": {"name": "bc_ucb"}}
        httpx.put(f"{server.url}/v1/problems/ads", json=body, timeout=60.0).raise_for_status()
        yield server


@schemathesis.serializer("application/x-ndjson")
def ndjson(context, value):
    return value.encode(errors="surrogatepass") if isinstance(value, str) else json.dumps(value).encode()


def schema(known: bool):
    """The document; with ``known``, paths are tried with names that exist."""
    raw = document(OPERATIONS)
    schemas = raw["components"]["schemas"]  # few policies and rewards: compiling each of them is not what is tested
    for policy in ("PolicySpec", "PolicyChange"):
        schemas[policy]["properties"]["name"]["enum"] = ["bc_ucb", "kl_moss", "kl_ucb", "pooled_thompson", "shapes"]
    schemas["RewardSpec"]["properties"]["name"]["enum"] = ["coverage"]
    schemas["ProblemSpec"]["properties"]["batches"] = {"type": "null"}
    if known:
        for path, methods in raw["paths"].items():
            for method in methods.values():
                for parameter in method.get("parameters", []):
                    if parameter["in"] == "path" and parameter["name"] != "version":
                        value = "ads" if parameter["name"] == "name" else "visit-1"
                        parameter["schema"] = {"type": "string", "enum": [value]}
            methods.pop("put", None) if path == "/v1/problems/{name}" else None
    return schemathesis.openapi.from_dict(raw, config=SchemathesisConfig.from_dict({"phases": PHASES}))


anything, existing = schema(False), schema(True)


@pytest.mark.slow("fuzzing")
@anything.parametrize()
@LIMITS
def test_any_input(case, service):
    if budget.allows(case.operation.label):
        case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=60)


@pytest.mark.slow("fuzzing")
@existing.parametrize()
@LIMITS
def test_input_for_what_exists(case, service, http):
    if budget.allows(f"{case.operation.label} of what exists"):
        http.post("/v1/problems/ads/decisions", json={"id": "visit-1"})
        case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=60)


@pytest.mark.slow("fuzzing")
def test_sequences_of_calls(service):
    machine = schema(False).as_state_machine()
    limits = settings(LIMITS, max_examples=3, stateful_step_count=4, phases=[Phase.generate])

    class Calls(machine):
        def get_call_kwargs(self, case):
            return {"base_url": service.url, "timeout": 60}

        def validate_response(self, response, case, additional_checks=(), **kwargs):
            case.validate_response(response, checks=CHECKS)

    Calls.run(settings=limits)

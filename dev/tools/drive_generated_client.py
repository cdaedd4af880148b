"""Drive a service with the client that ``generated_client.py`` has generated in the working directory."""

import json
import sys
from io import BytesIO
from typing import Any

sys.path.insert(0, "")

from generated import Client
from generated.api.default import (
    get_arms,
    get_decision,
    get_problem,
    post_bulk,
    post_decision,
    post_decisions,
    post_feedback,
    put_problem,
)
from generated.models import AskBody, AskManyBody, ErrorReply, ProblemSpec, TellBody, UnitBody
from generated.types import File


def main(url: str) -> None:
    with Client(base_url=url, timeout=60.0) as client:
        drive(client)
    print("created a problem, decided, sent feedback, and read what was learnt")


def drive(client: Any) -> None:
    spec = ProblemSpec.from_dict(
        {"arms": ["a", "b", "c"], "items": ["x", "y"], "k": 2, "settings": {"policy": {"name": "bc_ucb"}}}
    )
    created = put_problem.sync("ads", client=client, body=spec)
    assert (created.n_arms, created.k, created.settings.policy.name) == (3, 2, "bc_ucb"), created
    decision = post_decision.sync("ads", client=client, body=AskBody(id="visit-1"))
    assert decision.id == "visit-1"
    first, second = decision.arms
    clicked = TellBody(feedback=[UnitBody(arm=first, item="x", value=1.0)])
    told = post_feedback.sync("visit-1", client=client, body=clicked)
    assert (told.applied, told.state) == (True, "open"), told
    rest = [UnitBody(arm=first, item="y", value=0.0), UnitBody(arm=second, value=0.0)]
    assert post_feedback.sync("visit-1", client=client, body=TellBody(feedback=rest)).state == "complete"
    assert get_decision.sync("ads", "visit-1", client=client).state == "complete"
    rows = {row.arm: row for row in get_arms.sync("ads", client=client, limit=10).arms}
    assert (rows[first].pulls, rows[first].mean) == (1, [1.0, 0.0]), rows
    many = post_decisions.sync("ads", client=client, body=AskManyBody([AskBody(id="visit-2"), AskBody(k=3)]))
    assert many.decisions[0].id == "visit-2"
    assert isinstance(many.decisions[1], ErrorReply), many
    line = json.dumps({"decision": "visit-2", "outcome": [[1, 1], [0, 0]]}).encode() + b"\n"
    answers: Any = post_bulk.sync("ads", client=client, body=File(BytesIO(line)))
    assert json.loads(answers)["state"] == "complete", answers
    assert get_problem.sync("ads", client=client).decisions == 2
    missing = get_problem.sync("nobody", client=client)
    assert isinstance(missing, ErrorReply), missing
    assert missing.error.code == "unknown"


if __name__ == "__main__":
    main(sys.argv[1])

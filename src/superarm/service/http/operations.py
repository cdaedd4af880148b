"""The operations of ``/v1`` as one table. Routes, the OpenAPI document and tests are made from it.

What an operation does is the first line of its handler's docstring.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from superarm.service import replies, schemas
from superarm.service.domain.spec import ProblemSpec
from superarm.service.http import audit, handlers
from superarm.service.http.handlers import Answer, Call

P = "/v1/problems/{name}"
D = f"{P}/decisions/{{id}}"


class Operation(NamedTuple):
    """One operation: method, path, required scope, handler, type of the reply, possible errors, type of the body.

    ``example`` is one of the body, ``query`` the type of the URL's parameters. With ``creates``, the status is 201 if
    something is new.
    """

    method: str
    path: str
    scope: str
    handler: Callable[[Call], Awaitable[Answer]]
    reply: Any
    refusals: tuple[int, ...] = ()
    body: Any = None
    example: Any = None
    query: type[schemas.Query] = schemas.Query
    creates: bool = False

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return inspect.cleandoc(self.handler.__doc__ or "").partition("\n")[0]

    @property
    def name(self) -> str:
        """Its name among all operations."""
        return self.handler.__name__

    @property
    def replies(self) -> dict[int, Any]:
        """The type of the reply, by the status."""
        return {201: self.reply, 200: self.reply} if self.creates else {200: self.reply}


PROBLEM, DECISION, APPLIED = replies.ProblemReply, replies.DecisionReply, replies.AppliedReply
TOLD = {"feedback": [{"arm": "ad-1", "item": "sport", "value": 1.0}, {"arm": "ad-2", "seen": False}]}
BULK = '{"decision":"visit-1","feedback":[{"arm":"ad-1","value":0.0}]}\n'
SETTINGS = {"policy": {"name": "kl_ucb"}, "explore": 0.1, "window_s": 3600.0, "at_window_end": 0.0}
CREATED = {
    "arms": ["ad-1", "ad-2", "ad-3", "ad-4"],
    "items": ["sport", "news"],
    "k": 2,
    "settings": {"policy": {"name": "kl_moss"}, "at_window_end": 0.0, "words": {"arm": "ad", "outcome": "click"}},
}
PAST = {"id": "2026-10", "arms": ["ad-1"], "outcomes": [[1.0, None]]}
VISIT = {"id": "visit-1", "eligible": ["ad-1", "ad-2"]}
VISITS = {"decisions": [{"id": "visit-2"}, {}]}
NEW_ARM, NEW_ITEM = {"add": ["ad-5"], "retire": ["ad-4"]}, {"add": ["arts"], "weights": [2.0]}
FEW, MOST = (404, 422), (404, 409, 422)

OPERATIONS = (
    Operation("PUT", P, "admin", handlers.put_problem, PROBLEM, (409, 422, 429), ProblemSpec, CREATED, creates=True),
    Operation("GET", "/v1/problems", "read", handlers.get_problems, replies.NamesReply),
    Operation("GET", "/v1/audit", "admin", handlers.get_audit, audit.AuditReply, (422,), query=schemas.AuditQuery),
    Operation("GET", P, "read", handlers.get_problem, PROBLEM, (404,)),
    Operation("GET", f"{P}/arms", "read", handlers.get_arms, replies.ArmsReply, FEW, query=schemas.PageQuery),
    Operation("POST", f"{P}/arms", "admin", handlers.post_arms, PROBLEM, FEW, schemas.ArmsBody, NEW_ARM),
    Operation("POST", f"{P}/outcomes", "feedback", handlers.post_outcomes, APPLIED, MOST, schemas.PastBody, PAST),
    Operation("POST", f"{P}/items", "admin", handlers.post_items, PROBLEM, FEW, schemas.ItemsBody, NEW_ITEM),
    Operation("GET", f"{P}/items", "read", handlers.get_items, replies.ItemsReply, (404,)),
    Operation(
        "POST", f"{P}/items/learn", "admin", handlers.learn_items, replies.ItemsReply, FEW, schemas.LearnBody, {}
    ),
    Operation("PATCH", f"{P}/settings", "admin", handlers.patch_settings, PROBLEM, FEW, schemas.SettingsBody, SETTINGS),
    Operation("GET", f"{P}/versions", "read", handlers.get_versions, replies.VersionsReply, (404,)),
    Operation("POST", f"{P}/versions/{{version}}/restore", "admin", handlers.restore_version, PROBLEM, FEW),
    Operation("GET", f"{P}/lift", "read", handlers.get_lift, replies.LiftReply, FEW, query=schemas.LiftQuery),
    Operation(
        *("POST", f"{P}/decisions", "decide", handlers.post_decision, DECISION, (404, 409, 422, 429)),
        *(schemas.AskBody, VISIT),
        creates=True,
    ),
    Operation(
        *("POST", f"{P}/decisions/bulk", "decide", handlers.post_decisions, replies.DecisionsReply, FEW),
        *(schemas.AskManyBody, VISITS),
    ),
    Operation("GET", D, "read", handlers.get_decision, DECISION, (404,)),
    Operation(
        *("GET", f"{D}/explanation", "read", handlers.get_explanation, replies.ExplanationReply, FEW),
        query=schemas.ExplanationQuery,
    ),
    Operation("POST", f"{D}/feedback", "feedback", handlers.post_feedback, APPLIED, MOST, schemas.TellBody, TOLD),
    Operation(
        *("POST", f"{D}/activate", "decide", handlers.post_activation, APPLIED, MOST, schemas.ActivateBody),
        {"shown": ["ad-2", "ad-1"]},
    ),
    Operation("POST", f"{P}/feedback/bulk", "feedback", handlers.post_bulk, bytes, (404,), bytes, BULK),
    Operation(
        *("POST", f"{P}/erasures", "admin", handlers.erase_unit, replies.ErasedReply, FEW, schemas.ErasureBody),
        {"unit": "visitor-1"},
    ),
    Operation("DELETE", D, "admin", handlers.erase_decision, replies.ErasedReply, (404,)),
    # Last, so that the examples can be tried one after the other.
    Operation("DELETE", P, "admin", handlers.delete_problem, replies.ErasedReply, (404,)),
)

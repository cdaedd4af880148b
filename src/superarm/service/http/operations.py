"""The operations of ``/v1`` as one table. Routes, the OpenAPI document and tests are made from it."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from superarm.service import replies, schemas
from superarm.service.domain.spec import ProblemSpec
from superarm.service.http import handlers, searching
from superarm.service.http.explanations import ExplanationReply
from superarm.service.http.handlers import Answer, Call
from superarm.service.http.query import DELTA, PAGE, Parameter, number, text, whole
from superarm.service.http.searching import AuditReply


class Operation(NamedTuple):
    """One operation: method, path, required scope, handler, types of body and replies, possible errors, and query."""

    method: str
    path: str
    scope: str
    handler: Callable[[Call], Awaitable[Answer]]
    summary: str
    body: Any
    replies: dict[int, Any]
    refusals: tuple[int, ...]
    example: Any = None
    query: tuple[Parameter, ...] = ()


_P = "/v1/problems/{name}"

LOG_OPERATIONS = (
    Operation(
        "GET",
        f"{_P}/decisions",
        "read",
        searching.get_decisions,
        "Decisions, newest first, by time, arm, unit, state and group; cursor goes on where the last page ended.",
        None,
        {200: searching.DecisionPageReply},
        (404, 422),
        query=searching.FOUND_QUERY,
    ),
    Operation(
        "GET",
        f"{_P}/history",
        "read",
        searching.get_history,
        "How often an arm was shown and what came of it, over time; without arm, all arms together.",
        None,
        {200: searching.HistoryReply},
        (404, 422),
        query=searching.HISTORY_QUERY,
    ),
    Operation(
        "POST",
        f"{_P}/erasures",
        "admin",
        searching.erase_unit,
        "Erase all decisions of a unit: they count no longer, as if they had never been made.",
        schemas.ErasureBody,
        {200: searching.ErasedReply},
        (404, 422),
        {"unit": "visitor-1"},
    ),
    *(
        Operation(
            "DELETE",
            path,
            "admin",
            handler,
            "Erase a decision: it counts no longer, as if it had never been made.",
            None,
            {200: searching.ErasedReply},
            (404, 421),
        )
        for path, handler in (
            (f"{_P}/decisions/{{id}}", searching.erase_problem_decision),
            ("/v1/decisions/{id}", searching.erase_decision),
        )
    ),
)

DELETE_PROBLEM = Operation(
    "DELETE",
    _P,
    "admin",
    searching.delete_problem,
    "Delete a problem with its decisions. Its name may be used again, for another problem.",
    None,
    {200: searching.DeletedReply},
    (404,),
)


_P = "/v1/problems/{name}"
_D = "/v1/decisions/{id}"
_PD = f"{_P}/decisions/{{id}}"

OPERATIONS = (
    Operation(
        "PUT",
        _P,
        "admin",
        handlers.put_problem,
        "Create a problem; repeating the call changes nothing.",
        ProblemSpec,
        {201: replies.ProblemReply, 200: replies.ProblemReply},
        (409, 422, 429),
        {
            "arms": ["ad-1", "ad-2", "ad-3", "ad-4"],
            "items": ["sport", "news"],
            "k": 2,
            "settings": {
                "policy": {"name": "kl_moss"},
                "at_window_end": 0.0,
                "words": {"arm": "ad", "outcome": "click"},
            },
        },
    ),
    Operation(
        "GET",
        "/v1/problems",
        "read",
        handlers.get_problems,
        "The names of all problems.",
        None,
        {200: replies.NamesReply},
        (),
    ),
    Operation(
        "GET",
        "/v1/audit",
        "admin",
        searching.get_audit,
        "Administrative changes, newest first; offset and limit select a page, problem one problem.",
        None,
        {200: AuditReply},
        (422,),
        query=(text("problem"), *PAGE),
    ),
    *(
        Operation("GET", path, "read", handler, summary, None, {200: replies.ComponentsReply}, ())
        for path, handler, summary in (
            ("/v1/policies", handlers.get_policies, "The policies that a problem can name, with their parameters."),
            ("/v1/rewards", handlers.get_rewards, "The rewards that a problem can name, with their parameters."),
            ("/v1/actions", handlers.get_actions, "The action sets that a problem can name, with their parameters."),
        )
    ),
    Operation(
        "GET",
        _P,
        "read",
        handlers.get_problem,
        "The current state of a problem.",
        None,
        {200: replies.ProblemReply},
        (404,),
    ),
    Operation(
        "GET",
        f"{_P}/arms",
        "read",
        handlers.get_arms,
        "Statistics of arms; offset and limit select a page.",
        None,
        {200: replies.ArmsReply},
        (404, 422),
        query=PAGE,
    ),
    Operation(
        "POST",
        f"{_P}/arms",
        "admin",
        handlers.post_arms,
        "Add, retire and restore arms.",
        schemas.ArmsBody,
        {200: replies.ProblemReply},
        (404, 422),
        {"add": ["ad-5"], "retire": ["ad-4"]},
    ),
    Operation(
        "POST",
        f"{_P}/outcomes",
        "feedback",
        handlers.post_outcomes,
        "Outcomes without a decision: a warm start from logs.",
        schemas.PastBody,
        {200: replies.AppliedReply},
        (404, 409, 422),
        {"id": "2026-10", "arms": ["ad-1"], "outcomes": [[1.0, None]]},
    ),
    Operation(
        "POST",
        f"{_P}/items",
        "admin",
        handlers.post_items,
        "Add and retire items.",
        schemas.ItemsBody,
        {200: replies.ProblemReply},
        (404, 422),
        {"add": ["arts"], "weights": [2.0]},
    ),
    Operation(
        "PUT",
        f"{_P}/settings",
        "admin",
        handlers.put_settings,
        "Replace all settings: a new version, counters kept. What is left out has the default of a new problem.",
        schemas.SettingsBody,
        {200: replies.ProblemReply},
        (404, 422),
        {"policy": {"name": "kl_ucb"}, "explore": 0.1, "window_s": 3600.0, "at_window_end": 0.0},
    ),
    Operation(
        "PATCH",
        f"{_P}/settings",
        "admin",
        handlers.patch_settings,
        "Change some settings: a new version, counters kept. What is left out stays.",
        schemas.SettingsBody,
        {200: replies.ProblemReply},
        (404, 422),
        {"explore": 0.1},
    ),
    Operation(
        "GET",
        f"{_P}/versions",
        "read",
        handlers.get_versions,
        "All versions of the settings.",
        None,
        {200: replies.VersionsReply},
        (404,),
    ),
    Operation(
        "POST",
        f"{_P}/versions/{{version}}/restore",
        "admin",
        handlers.restore_version,
        "Restore the settings of an earlier version, as a new version.",
        None,
        {200: replies.ProblemReply},
        (404, 422),
    ),
    Operation(
        "GET",
        f"{_P}/lift",
        "read",
        handlers.get_lift,
        "The reward with the policy against that of the control share, with intervals that hold at all times.",
        None,
        {200: replies.LiftReply},
        (404, 422),
        query=(DELTA, text("item")),
    ),
    Operation(
        "GET",
        f"{_P}/certificate",
        "read",
        handlers.get_certificate,
        "Whether the slate that is best by the means is best up to epsilon; epsilon and delta may be given.",
        None,
        {200: replies.CertificateReply},
        (404, 422),
        query=(number("epsilon", 1e12), DELTA),
    ),
    Operation(
        "POST",
        f"{_P}/decisions",
        "decide",
        handlers.post_decision,
        "Ask for a decision.",
        schemas.AskBody,
        {201: replies.DecisionReply, 200: replies.DecisionReply},
        (404, 409, 422, 429),
        {"id": "visit-1", "eligible": ["ad-1", "ad-2"]},
    ),
    Operation(
        "POST",
        f"{_P}/decisions/bulk",
        "decide",
        handlers.post_decisions,
        "Ask for several decisions at once.",
        schemas.AskManyBody,
        {200: replies.DecisionsReply},
        (404, 422),
        {"decisions": [{"id": "visit-2"}, {}]},
    ),
    *(
        Operation(
            "GET",
            path,
            "read",
            handler,
            "The current state of a decision.",
            None,
            {200: replies.DecisionReply},
            (404, 421),
        )
        for path, handler in ((_D, handlers.get_decision), (_PD, handlers.get_problem_decision))
    ),
    Operation(
        "GET",
        f"{_D}/explanation",
        "read",
        handlers.get_explanation,
        "Why these arms: estimates, optimistic parameters, marginal gains, and the features that mattered most.",
        None,
        {200: ExplanationReply},
        (404, 421, 422),
        query=(whole("most", 0, 100, 5),),
    ),
    *(
        Operation(
            "POST",
            f"{path}/feedback",
            "feedback",
            handler,
            "Send feedback: what the arms of a decision did.",
            schemas.TellBody,
            {200: replies.AppliedReply},
            (404, 409, 421, 422),
            {"feedback": [{"arm": "ad-1", "item": "sport", "value": 1.0}, {"arm": "ad-2", "seen": False}]},
        )
        for path, handler in ((_D, handlers.post_feedback), (_PD, handlers.post_problem_feedback))
    ),
    *(
        Operation(
            "POST",
            f"{path}/activate",
            "decide",
            handler,
            "Report that a decision was shown, and with which arms.",
            schemas.ActivateBody,
            {200: replies.AppliedReply},
            (404, 409, 421, 422),
            {"shown": ["ad-2", "ad-1"]},
        )
        for path, handler in ((_D, handlers.post_activation), (_PD, handlers.post_problem_activation))
    ),
    *(
        Operation(
            "POST",
            f"{path}/feedback/bulk",
            "feedback",
            handler,
            "Feedback of many decisions: NDJSON, one line per decision.",
            bytes,
            {200: bytes},
            () if path == "/v1" else (404,),
            '{"decision":"visit-1","feedback":[{"arm":"ad-1","value":0.0}]}\n',
        )
        for path, handler in (("/v1", handlers.post_bulk), (_P, handlers.post_problem_bulk))
    ),
    *LOG_OPERATIONS,
    DELETE_PROBLEM,  # last, so that the examples can be tried one after the other
)

"""The operations that read decisions out of the log, or take them out of it."""

from superarm.service import schemas
from superarm.service.http import erasing, searching
from superarm.service.http.operation import Operation

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
        erasing.erase_unit,
        "Erase all decisions of a unit: they count no longer, as if they had never been made.",
        schemas.ErasureBody,
        {200: erasing.ErasedReply},
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
            {200: erasing.ErasedReply},
            (404, 421),
        )
        for path, handler in (
            (f"{_P}/decisions/{{id}}", erasing.erase_problem_decision),
            ("/v1/decisions/{id}", erasing.erase_decision),
        )
    ),
)

DELETE_PROBLEM = Operation(
    "DELETE",
    _P,
    "admin",
    erasing.delete_problem,
    "Delete a problem with its decisions. Its name may be used again, for another problem.",
    None,
    {200: erasing.DeletedReply},
    (404,),
)

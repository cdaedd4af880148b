"""The newest decisions of a problem as a log that ``superarm.offline`` evaluates."""

from typing import Any

from superarm.offline.formats.tables import log_from_columns
from superarm.offline.log import Log
from superarm.service.domain.decision import DecisionRecord, advance_record, open_record
from superarm.service.domain.events import Asked
from superarm.service.domain.problem import ProblemState
from superarm.service.storage.base import Position, Store
from superarm.service.storage.tables import FIELDS, decision_rows, describe_problem

MAX_READ_EVENTS = 100_000
"""Of each worker's log, the last so many events are read."""
MAX_EVALUATED_VALUES = 200_000
"""Of these, the newest decisions with so many outcomes in total are evaluated."""


def recent_decisions(
    store: Store, position: Position, tenant: str, name: str, n_values: int, born: int = 0
) -> dict[str, DecisionRecord]:
    """The newest decisions of a problem, each with ``n_values`` outcomes, by id and in the order of their rounds."""
    records: dict[str, DecisionRecord] = {}
    for read in store.tail({worker: seq - MAX_READ_EVENTS for worker, seq in position.items()}):
        entry = read.entry
        if entry.kind != "decision" or entry.tenant != tenant:
            continue
        if isinstance(entry.event, Asked):
            if entry.event.problem == name and entry.event.born == born:
                records[entry.stream] = open_record(entry.event)
        elif entry.stream in records and records[entry.stream].step == entry.step - 1:
            records[entry.stream] = advance_record(records[entry.stream], entry.event)
    records = {id: record for id, record in records.items() if record.closed != "erased"}
    newest = sorted(records.values(), key=lambda record: record.asked.t)[-max(1, MAX_EVALUATED_VALUES // n_values) :]
    return {record.asked.id: record for record in newest}


def log_of(records: dict[str, DecisionRecord], tenant: str, name: str, learner: ProblemState) -> Log:
    """The log of decisions; ``InvalidArgument`` if none of them was shown."""
    columns = {field: list[Any]() for field in FIELDS}
    for record in records.values():  # never all rows at once: freeing them would stop the event loop for a while
        for row in decision_rows(tenant, record, learner):
            for field, values in columns.items():
                values.append(row[field])
    return log_from_columns(columns, [describe_problem(tenant, name, learner)])

"""What happens to a decision: its record, its events and its rules, for agents and the service alike.

Pure functions without a clock, files or a network. events: what a log holds · record: what the events so far come to,
and what that adds to the counters · names · answers: feedback as callers give it, checked · rules: which event a
request makes
"""

from superarm.decisions.answers import Answer, Reader, Reported, read_answer
from superarm.decisions.events import ALL, UNKNOWN, UNSEEN, Activated, Erased, Event, Expired, Part, Told, Unit
from superarm.decisions.record import (
    DEFAULTED,
    PENDING,
    Counted,
    DecisionRecord,
    Row,
    advance_record,
    blank_row,
    counted_rows,
    feedback_of,
    open_record,
    pad_rows,
    pending_arms,
    to_flat,
    unasked,
    without_effect,
)
from superarm.decisions.rules import activation, expiry, feedback

__all__ = [
    "ALL",
    "DEFAULTED",
    "PENDING",
    "UNKNOWN",
    "UNSEEN",
    "Activated",
    "Answer",
    "Counted",
    "DecisionRecord",
    "Erased",
    "Event",
    "Expired",
    "Part",
    "Reader",
    "Reported",
    "Row",
    "Told",
    "Unit",
    "activation",
    "advance_record",
    "blank_row",
    "counted_rows",
    "expiry",
    "feedback",
    "feedback_of",
    "open_record",
    "pad_rows",
    "pending_arms",
    "read_answer",
    "to_flat",
    "unasked",
    "without_effect",
]

"""What policies earn in shops, beside the list that a shop shows today: ``python -m dev.earnings``.

shops: kinds of shops with known truth, for development and held out · visitors: what products of a page do to one
another · people: shops on published data · assumptions: shops in which one fails, and what helps · contest: a policy
serves the visitors of a shop · learnt: agents that learn items do · rivals: what policies are compared with · service:
what it warns of · report: tables and figure · commands: the command
"""

from dev.earnings.contest import Earnings, ServedShop
from dev.earnings.report import Entry, format_table, summarise, write_report
from dev.earnings.shops import DEVELOPMENT, HELD_OUT, KINDS, Draft, Kind, Shop, draw_shop

__all__ = [
    "DEVELOPMENT",
    "HELD_OUT",
    "KINDS",
    "Draft",
    "Earnings",
    "Entry",
    "Kind",
    "ServedShop",
    "Shop",
    "draw_shop",
    "format_table",
    "summarise",
    "write_report",
]

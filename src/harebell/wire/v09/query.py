"""The class query: what the queries of data programs report about themselves.

docs/protocols/extensions.md explains it.
"""

from __future__ import annotations

from harebell.wire.v09.method import Method, Table

NAME = "query"
VERSION = 1
CLASS_ID = 0xF004

TABLE = """
query 61444
  report          10  C   -> report-ok: shortstr query, table facts
  report-ok       11  S
"""


class QueryReport(Method):
    """Report how far a query is."""

    query: str = ""
    facts: Table = {}


class QueryReportOk(Method):
    """The report replaces the previous one of this user about the query."""

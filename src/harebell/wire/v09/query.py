"""The class query: what the queries of data programs report about themselves.

docs/protocols/extensions.md explains it.
"""

from __future__ import annotations

NAME = "query"
VERSION = 1
CLASS_ID = 0xF004

TABLE = """
query 61444
  report          10  C   -> report-ok: shortstr query, table facts
    "Report how far a query is."
  report-ok       11  S
    "The report replaces the previous one of this user about the query."
"""

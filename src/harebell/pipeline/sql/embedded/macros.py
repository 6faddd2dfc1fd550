"""Functions of DuckDB that convert as Spark does, with ANSI mode."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from harebell.pipeline.sql.embedded.kinds import ELSEWHERE
from harebell.pipeline.sql.embedded.spark_json import OTHERWISE, spark_json

INVALID = "harebell-invalid: "
"""What begins the error text of a value that cannot be converted."""

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)"
_REAL = rf"(?i)({_NUMBER}(e[+-]?[0-9]+)?|[+-]?inf(inity)?|nan)"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = (
    rf"{_DAY}([ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?(Z|[+-][0-9]{{2}}:[0-9]{{2}})?)?"
)
_SURROGATE, _UNKNOWN = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?"), "\ufffd".encode()
# What `String.trim` of Java removes.
_BARE = r"regexp_replace(x, '^[\x00-\x20]+|[\x00-\x20]+$', '', 'g')"


def _invalid(kind: str) -> str:
    return f"error('{INVALID}' || coalesce(x, '') || ' is no {kind}')"


def _parsed(pattern: str, kind: str, otherwise: str) -> str:
    return (
        f"CASE WHEN x IS NULL THEN NULL WHEN regexp_full_match({_BARE}, '{pattern}') "
        f"THEN CAST({_BARE} AS {kind}) ELSE {otherwise} END"
    )


def _lossy(data: bytes) -> str:
    """Return a text with U+FFFD for what is no UTF-8, as Java does: one for a whole surrogate."""
    return _SURROGATE.sub(_UNKNOWN, data).decode(errors="replace")


MACROS = {
    "hb_text(x)": "CASE WHEN x IS NOT NULL THEN coalesce(try(decode(x)), hb_lossy(x)) END",
    # The case of a letter outside ASCII may be two letters, and may depend on its neighbours.
    "hb_upper(x)": "CASE WHEN strlen(x) <> length(x) THEN hb_upper_any(x) ELSE upper(x) END",
    "hb_lower(x)": "CASE WHEN strlen(x) <> length(x) THEN hb_lower_any(x) ELSE lower(x) END",
    "hb_long(x)": _parsed("[+-]?[0-9]+", "BIGINT", _invalid("BIGINT")),
    "hb_int(x)": _parsed("[+-]?[0-9]+", "INTEGER", _invalid("INT")),
    "hb_double(x)": _parsed(_REAL, "DOUBLE", _invalid("DOUBLE")),
    "hb_digits(x)": _parsed(_NUMBER, "VARCHAR", f"error('{ELSEWHERE}a text as DECIMAL')"),
    "hb_time(x)": _parsed(_TIME, "TIMESTAMPTZ", f"error('{ELSEWHERE}a text as TIMESTAMP')"),
    "hb_date(x)": _parsed(_DAY, "DATE", f"error('{ELSEWHERE}a text as DATE')"),
    "hb_bool(x)": (
        f"CASE WHEN lower({_BARE}) IN ('t', 'true', 'y', 'yes', '1') THEN true "
        f"WHEN lower({_BARE}) IN ('f', 'false', 'n', 'no', '0') THEN false "
        f"WHEN x IS NULL THEN NULL ELSE {_invalid('BOOLEAN')} END"
    ),
    # Of several values of one name DuckDB takes the first, and Spark the first that is no null.
    "hb_json(x, path, otherwise)": (
        f"CASE WHEN json_valid(x) AND NOT regexp_matches(x, '{OTHERWISE}') "
        f"THEN coalesce(json_extract_string(x, path), "
        f"CASE WHEN otherwise THEN hb_json_any(x, path) END) "
        f"WHEN regexp_matches(x, '^[ \\t\\r\\n]*[{{\\[]') THEN hb_json_any(x, path) END"
    ),
    "hb_div(x, y)": (
        "CASE WHEN x IS NULL THEN NULL WHEN y = 0 THEN error('" + INVALID + "division by zero') "
        "ELSE CAST(x AS DOUBLE) / CAST(y AS DOUBLE) END"
    ),
    "hb_round(x, digits)": (
        "CASE WHEN abs(x) < 1e22 THEN "
        "CAST(round(CAST(CAST(x AS VARCHAR) AS DECIMAL(38, 15)), digits) AS DOUBLE) ELSE x END"
    ),
    # Java makes 0 of NaN; what is too large is an error in both.
    "hb_whole(x)": "CASE WHEN isnan(x) THEN 0 ELSE CAST(x AS BIGINT) END",
    # What is grouped by or told apart: Spark has one 0 there.
    "hb_zero(x)": "(x + CAST(0 AS DOUBLE))",
    "hb_seconds(x)": "CAST(floor(epoch_us(x) / 1000000) AS BIGINT)",
    "hb_shown(x)": "CAST(x AT TIME ZONE 'UTC' AS VARCHAR)",
}
"""The body of each macro, by its name and parameters."""

FUNCTIONS: dict[str, tuple[Callable[..., str | None], list[Any]]] = {
    "hb_lossy": (_lossy, ["BLOB"]),
    "hb_upper_any": (str.upper, ["VARCHAR"]),
    "hb_lower_any": (str.lower, ["VARCHAR"]),
    "hb_json_any": (spark_json, ["VARCHAR", "VARCHAR"]),
}
"""What is computed in Python, with the types of its arguments: each returns a text."""

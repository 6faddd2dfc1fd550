"""Read JSON as Spark's `get_json_object()` does, where DuckDB reads it otherwise.

Spark reads the first value of a text, and ignores what follows it. Strings may stand in single
quotes and have line ends in them; NaN and a comma before a bracket are no JSON. Numbers with a
fraction are written as Java does it.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

from harebell.pipeline.sql.embedded.kinds import ELSEWHERE

OTHERWISE = (
    # NaN, a comma before a bracket, a number that Java writes with an exponent, a surrogate pair.
    r"(?i)[:,\[\s-](nan|inf)|,\s*[}\]]|[:,\[\s]-?([0-9]+(\.[0-9]+)?e|[0-9]{8,}\.|0\.000)"
    r"|[\x{10000}-\x{10FFFF}]|\\ud[89ab]"
)
"""What a text has in which DuckDB finds another value than Spark, though it is JSON for DuckDB."""

_SPACE = " \t\r\n"
# A string that does not end is taken to the end of the text: others would be looked for in it.
_STRING = re.compile(r'"(?:[^"\\]|\\.?)*+(?:"|\Z)|\'((?:[^\'\\]|\\.?)*+)(?:\'|\Z)', re.S)
_BARE_QUOTE = re.compile(r'(\\.)|"', re.S)
_STEP = re.compile(r'\[(\d+)\]|\."([^"]*)"')
_NOT_ASCII_TWICE = re.compile("[\U00010000-\U0010ffff\ud800-\udfff]")
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7
"""Java writes the numbers between them without an exponent."""


_NULL_ELEMENT = object()
"""A null in an array: Spark has a text of it, and none of a null in an object."""


class _Fields(list[tuple[str, Any]]):
    """The fields of an object, in their order: a name may stand there twice."""


def spark_json(text: str, path: str) -> str | None:
    """Return what Spark finds in a text; None if that is nothing, a null field, or no JSON.

    Args:
        text: what should be JSON.
        path: steps such as `$."name"[0]`.

    Raises:
        ValueError: it is nested too deeply for this, and not for Spark.
    """
    try:
        return _spark_json(text, path)
    except RecursionError:
        raise ValueError(f"{ELSEWHERE}JSON that is nested as deeply") from None


def _spark_json(text: str, path: str) -> str | None:
    try:
        root, _ = _DECODER.raw_decode(text.lstrip(_SPACE))
    except ValueError:
        if "'" not in text:
            return None
        try:
            root, _ = _DECODER.raw_decode(_STRING.sub(_double_quoted, text).lstrip(_SPACE))
        except ValueError:
            return None
    steps = [int(at) if at else name for at, name in _STEP.findall(path)]
    found = _found(root, steps)
    if found is _NULL_ELEMENT:
        return "null"
    shown = found if isinstance(found, str) else None if found is None else _written(found)
    # Half of a surrogate pair is no text.
    return None if shown is None or not _is_text(shown) else shown


def java_double(value: float) -> str:
    """Return a number as Java writes it."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_Fields, parse_constant=_constant, strict=False)


def _double_quoted(string: re.Match[str]) -> str:
    inside = string[1]
    if inside is None:
        return string[0]
    return '"' + _BARE_QUOTE.sub(lambda sign: _requoted(sign[0]), inside) + '"'


def _requoted(sign: str) -> str:
    return {'"': '\\"', "\\'": "'"}.get(sign, sign)


def _found(value: Any, steps: list[int | str]) -> Any:
    if not steps:
        return value
    step, *others = steps
    if isinstance(step, int):
        if type(value) is not list or step >= len(value):
            return None
        return _found(value[step], others) if others or value[step] is not None else _NULL_ELEMENT
    if isinstance(value, _Fields):
        for name, each in value:
            if name == step and (found := _found(each, others)) is not None:
                return found
    return None


def _written(value: Any) -> str:
    if isinstance(value, _Fields):
        return "{" + ",".join(f"{_string(name)}:{_written(each)}" for name, each in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float):
        return f'"{java_double(value)}"' if math.isinf(value) else java_double(value)
    return json.dumps(value)


def _string(text: str) -> str:
    escaped = json.dumps(text, ensure_ascii=False)
    return _NOT_ASCII_TWICE.sub(lambda sign: _halves(sign[0]), escaped)


def _halves(sign: str) -> str:
    halves = sign.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{halves[at : at + 4]}" for at in range(0, len(halves), 4))


def _is_text(text: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in text)

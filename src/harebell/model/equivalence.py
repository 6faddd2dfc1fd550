"""Equivalence: check that a redeclaration agrees with the first declaration.

Only arguments that have an effect are compared; others are kept and ignored. Integers of different
widths are equal if their values are; strings, integers and booleans never equal each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from reprlib import Repr
from typing import Any

from harebell.base.errors import Refusal
from harebell.model.resource import precondition

# Of a value that a peer has chosen, error texts show the begin.
_SHOWN = 20
_BEGIN = Repr()
_BEGIN.maxlevel, _BEGIN.maxstring, _BEGIN.maxlong = 4, 200, 200
_BEGIN.maxdict = _BEGIN.maxlist = _BEGIN.maxtuple = _SHOWN


def type_name(value: Any) -> str:
    """Return the name of a table value's type as in RabbitMQ's error texts."""
    # Before int: a bool is an int in Python.
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "signedint" if -(2**31) <= value < 2**31 else "long"
    if isinstance(value, str | bytes):
        return "longstr"
    if isinstance(value, float):
        return "double"
    if isinstance(value, Mapping):
        return "table"
    if isinstance(value, list | tuple):
        return "array"
    if value is None:
        return "void"
    return type(value).__name__.lower()


def shown(value: Any) -> str:
    """Return a value as error texts show it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return _BEGIN.repr(value) if isinstance(value, dict | list | tuple) else str(value)


def term(value: Any) -> str:
    """Return a value as an Erlang term, as in some of RabbitMQ's error texts."""
    if isinstance(value, str):
        return f'<<"{value}">>'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        parts = [shown(each) if isinstance(each, list) else term(each) for each in value[:_SHOWN]]
        return f"[{','.join(parts)}{',...' if len(value) > _SHOWN else ''}]"
    return shown(value)


def inequivalent(field: str, resource: str, received: str, current: str) -> Refusal:
    """Return the refusal of a redeclaration that differs."""
    return precondition(
        f"inequivalent arg '{field}' for {resource}: received {received} but current is {current}"
    )


def check_field(field: str, resource: str, received: Any, current: Any) -> None:
    """Refuse unless both values are equal."""
    if received != current:
        raise inequivalent(field, resource, f"'{shown(received)}'", f"'{shown(current)}'")


def _described(arguments: Mapping[str, Any], key: str) -> str:
    if key not in arguments:
        return "none"
    value = arguments[key]
    return f"the value '{shown(value)}' of type '{type_name(value)}'"


def _class(value: Any) -> str:
    name = type_name(value)
    return "int" if name in ("signedint", "long") else name


def check_arguments(
    resource: str, received: Mapping[str, Any], current: Mapping[str, Any], keys: Iterable[str]
) -> None:
    """Refuse unless the arguments are equal for the given keys."""
    for key in keys:
        if key not in received and key not in current:
            continue
        if key in received and key in current:
            new, old = received[key], current[key]
            if _class(new) != _class(old) or new != old:
                raise inequivalent(key, resource, f"'{shown(new)}'", f"'{shown(old)}'")
            continue
        raise inequivalent(key, resource, _described(received, key), _described(current, key))

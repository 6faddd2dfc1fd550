"""Check values of definitions: every store refuses the same ones, before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.errors import ErrorKind, Refusal

_INT64 = 1 << 63


def checked_table(
    encode: Callable[[Mapping[str, Any]], bytes], resource: str, table: Mapping[str, Any]
) -> bytes:
    """Encode a table of arguments.

    Args:
        encode: encodes a table; raises ValueError or TypeError with the reason for one that cannot
            be encoded.
        resource: what has the arguments, for the error.
        table: the arguments.

    Raises:
        Refusal: PRECONDITION_FAILED, with the reason.
    """
    try:
        return encode(table)
    except (ValueError, TypeError) as error:
        raise _invalid(f"arguments of {resource}", str(error)) from None


def check_text(kind: str, name: str, text: str) -> None:
    """Refuse a text that a column of a definition cannot hold.

    Raises:
        Refusal: PRECONDITION_FAILED.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _invalid(f"{name} of {kind}", f"{text!a} is no UTF-8") from None


def check_number(kind: str, name: str, number: int) -> None:
    """Refuse a number that a column of a definition cannot hold.

    Raises:
        Refusal: PRECONDITION_FAILED.
    """
    if not -_INT64 <= number < _INT64:
        raise _invalid(f"{name} of {kind}", f"{number} does not fit into 64 bits")


def _invalid(what: str, why: str) -> Refusal:
    return Refusal(ErrorKind.PRECONDITION_FAILED, f"invalid {what}: {why}")

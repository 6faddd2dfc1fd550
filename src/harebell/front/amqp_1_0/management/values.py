"""Values in the bodies of requests: arguments as tables of 0-9-1 have them, and back."""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harebell.base.values import Typed
from harebell.wire.v1 import encoding
from harebell.wire.v1.values import Char, Symbol, Timestamp

_MS = 1_000


class BadRequest(ValueError):
    """A request that cannot be understood; the text is for its client."""


def plain(value: Any, what: str) -> Any:
    """Return a value of AMQP 1.0 as one of a field table.

    Args:
        value: as decoded.
        what: it is, for the error.

    Raises:
        BadRequest: field tables have no such values.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Timestamp):
        try:
            return datetime.fromtimestamp(value / _MS, UTC)
        except (OverflowError, ValueError, OSError):
            raise BadRequest(f"{what} is no time that can be kept: {int(value)}") from None
    if isinstance(value, Symbol | str) and not isinstance(value, Char):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, bytes):
        return value
    if isinstance(value, list):
        return [plain(each, what) for each in value]
    if isinstance(value, dict):
        return table(value, what)
    raise BadRequest(f"{what} may not be {type(value).__name__.lower()}")


def table(value: Any, what: str) -> dict[str, Any]:
    """Return a map as a field table.

    Raises:
        BadRequest: it is no map, or a key is neither string nor symbol.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{what} must be map, not {type(value).__name__.lower()}")
    for key in value:
        if not isinstance(key, str):
            raise BadRequest(f"a key of {what} must be string, not {key!r:.100}")
    return {str(key): plain(each, f"{what} '{key:.100}'") for key, each in value.items()}


def shown(value: Any) -> Any:
    """Return a value of a field table as one of AMQP 1.0."""
    if isinstance(value, Typed):
        # Of 0-10, without an equivalent.
        return value.data
    if isinstance(value, datetime):
        return Timestamp(int(value.timestamp() * _MS))
    if isinstance(value, Mapping):
        return {str(key): shown(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [shown(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    # A decimal: AMQP 1.0 has others.
    return str(value)


def digest(arguments: Mapping[str, Any]) -> str:
    """Return what stands for the arguments of a binding in its location; "" without any."""
    if not arguments:
        return ""
    in_order = {key: shown(arguments[key]) for key in sorted(arguments)}
    number = zlib.crc32(encoding.encode(in_order))
    return urlsafe_b64encode(number.to_bytes(4)).rstrip(b"=").decode()

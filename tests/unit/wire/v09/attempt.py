"""Reading octets that may be wrong: the value, or the one error that is allowed to come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.errors import ProtocolError


def attempt(read: Callable[[Any], Any], data: Any) -> Any:
    """What `read` returns for the data, or the ProtocolError it raises; no other error passes."""
    try:
        return read(data)
    except ProtocolError as error:
        return error

"""Which function serves which method on an open channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.front.session010t import (
    access,
    basic,
    binding,
    exchange,
    execution,
    flow,
    message,
    queue,
    session,
)
from harebell.front.session09 import tx

HANDLERS: dict[type, Callable[[Any, Any], None]] = {}
for _file in (access, basic, binding, exchange, execution, flow, message, queue, session, tx):
    HANDLERS.update(_file.HANDLERS)

"""The handlers of methods on open channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.front.amqp_0_9_1 import access, basic, confirm, exchange, flow, queue, tx

HANDLERS: dict[type, Callable[[Any, Any], None]] = {}
for _file in (access, basic, confirm, exchange, flow, queue, tx):
    HANDLERS.update(_file.HANDLERS)

"""The handlers of methods on open channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.front.amqp_0_9_1 import tunnel, tx
from harebell.front.amqp_0_10_transitional import (
    access,
    basic,
    binding,
    contents,
    dtx_coordination,
    dtx_demarcation,
    exchange,
    execution,
    flow,
    message,
    queue,
    session,
)

HANDLERS: dict[type, Callable[[Any, Any], None]] = {}
_DTX = (dtx_coordination, dtx_demarcation)
for _file in (
    access,
    basic,
    binding,
    contents,
    exchange,
    execution,
    flow,
    message,
    queue,
    session,
    tunnel,
    tx,
    *_DTX,
):
    HANDLERS.update(_file.HANDLERS)

"""Which function serves which method on an open channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.front.session010t import (
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
from harebell.front.session09 import tunnel, tx

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

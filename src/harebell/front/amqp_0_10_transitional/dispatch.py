"""The handlers of methods on open channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.front.amqp_0_9_1 import file, stream, tunnel, tx
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
for _file in (
    *(access, basic, binding, exchange, execution, flow, message, queue, session, tunnel, tx),
    # What has tickets of this version comes after what does not.
    *(file, stream, contents, dtx_coordination, dtx_demarcation),
):
    HANDLERS.update(_file.HANDLERS)

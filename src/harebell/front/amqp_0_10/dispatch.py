"""Command class -> handler, for all classes of commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.front.amqp_0_10 import (
    dtx,
    exchange,
    execution_class,
    file,
    message,
    queue,
    stream,
    tx,
)

Handlers = dict[type, Callable[[Any, Any], None]]

COMMANDS: Handlers = {
    **execution_class.COMMANDS,
    **message.COMMANDS,
    **tx.COMMANDS,
    **dtx.COMMANDS,
    **exchange.COMMANDS,
    **queue.COMMANDS,
    **file.COMMANDS,
    **stream.COMMANDS,
}
"""Commands without content: called with the session and the command."""

CONTENT_COMMANDS: dict[type, Callable[[Any, Any, bytes, bytes], None]] = {
    **file.CONTENT_COMMANDS,
    **stream.CONTENT_COMMANDS,
}
"""Commands with content, but for message.transfer: called with header and body, too."""

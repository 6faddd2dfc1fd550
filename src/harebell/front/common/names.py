"""Names of queues and exchanges as clients give them, and generated names."""

from __future__ import annotations

import base64
from collections.abc import Callable

from harebell.base.errors import ErrorKind, Refusal

_GENERATED_BYTES = 16
_LINE_ENDS = str.maketrans("", "", "\r\n")


def clean(name: str) -> str:
    """Remove line ends from a queue or exchange name, as RabbitMQ does."""
    return name.translate(_LINE_ENDS)


def generated(prefix: str, rng: Callable[[int], bytes]) -> str:
    """Generate a unique name: `amq.gen-` or `amq.ctag-` and 22 random characters."""
    return prefix + base64.urlsafe_b64encode(rng(_GENERATED_BYTES)).rstrip(b"=").decode()


def meant(name: str, last_queue: str) -> str:
    """Resolve a queue name: "" is the queue declared last on the channel (AMQP 0-9-1 1.7)."""
    name = clean(name)
    if name:
        return name
    if not last_queue:
        raise Refusal(ErrorKind.NO_QUEUE_NAMED, "no previously declared queue")
    return last_queue

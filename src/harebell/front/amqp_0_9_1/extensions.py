"""The handlers of Harebell's own classes, which only 0-9-1 has.

The files are imported with the first of these methods. Only Harebell's clients use them, and they
import leases, bulk reads, staged batches and Arrow's format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.extensions import FIRST_CLASS

Handler = Callable[[Any, Any], None]


@cache
def _handlers() -> Mapping[type, Handler]:
    """Return the handler of each method."""
    from harebell.front.amqp_0_9_1 import (
        bulk,
        bulk_names,
        history,
        lease,
        publisher,
        query,
        stage,
    )

    served: dict[type, Handler] = {}
    for file in (lease, bulk, bulk_names, publisher, query, history, stage):
        served.update(file.HANDLERS)
    return served


def _serve(channel: Any, method: Any) -> None:
    """Serve a method of these classes."""
    _handlers()[type(method)](channel, method)


HANDLERS: dict[type, Handler] = {
    spec.type: _serve
    for spec in AMQP_0_9_1.methods
    if spec.class_id >= FIRST_CLASS and spec.from_client
}

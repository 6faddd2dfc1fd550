"""Queue arguments: which are known, which are acted on, and what is refused.

Arguments that Harebell does not act on yet are kept and reported, and a redeclaration must repeat
them, as with RabbitMQ. A queue type that does not exist here is refused: a client that asks for
replication or replay must not believe that it got them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.model.equivalence import shown, type_name
from harebell.model.resource import precondition

QUEUE_TYPE = "x-queue-type"
MAX_PRIORITY = "x-max-priority"
TYPES = ("classic",)

COMPARED = (
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-single-active-consumer",
    "x-queue-type",
    "x-delivery-limit",
    "x-max-age",
)
"""Arguments that a redeclaration must repeat."""


def check_queue_arguments(thing: str, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that would change what the queue is.

    Args:
        thing: the queue, rendered for the error text.
        arguments: as given by the client.
    """
    if QUEUE_TYPE not in arguments:
        return
    wanted = arguments[QUEUE_TYPE]
    if not isinstance(wanted, str):
        raise precondition(
            f"invalid arg '{QUEUE_TYPE}' for {thing}: {{unacceptable_type,{type_name(wanted)}}}"
        )
    if wanted not in TYPES:
        raise precondition(
            f"invalid arg '{QUEUE_TYPE}' for {thing}: \"unsupported queue type '{shown(wanted)}'\""
        )


ACTED_ON = (QUEUE_TYPE,)


def ignored_arguments(arguments: Mapping[str, Any]) -> list[str]:
    """The `x-` arguments that were accepted and have no effect yet."""
    return [name for name in arguments if name.startswith("x-") and name not in ACTED_ON]

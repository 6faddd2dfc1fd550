"""The verb of histories: which eras positions and claim numbers belong to.

It is Harebell's own (docs/protocols/extensions.md); with a broker that lacks it, it raises
`ExtensionMissing`.
"""

from __future__ import annotations

from typing import NamedTuple

from harebell.client.protocol.call import Call
from harebell.client.protocol.verbs import Verbs
from harebell.wire.v09 import history as wire
from harebell.wire.v09 import methods


class History(NamedTuple):
    """The history of a queue's log, or of a lease group.

    Args:
        generation: identity of the log; it changes if the queue is deleted and declared again.
        eras: the names of its eras, each with its first number, the oldest first.
    """

    generation: str
    eras: str


def history(channel: Verbs, queue: str, group: str = "") -> Call[History]:
    """Return the eras of a queue's positions, or of the claim numbers of a lease group.

    Args:
        channel: any channel.
        queue: the name of the queue.
        group: the name of a lease group; "" for positions.

    Raises:
        NotFound: there is no such queue or group.
        ExtensionMissing: the broker records no eras.
    """
    channel.need(wire.NAME)
    return channel.call(methods.HistoryAsk(queue, group), (methods.HistoryAskOk,), _history)


def _history(reply: methods.HistoryAskOk) -> History:
    return History(reply.generation, reply.eras.decode("ascii", "replace"))

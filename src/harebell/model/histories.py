"""The eras of the logs whose positions readers keep: see `harebell.base.eras`.

A stream has a row from its declaration on; another durable queue gets one when it is first asked
for its eras. Each start of the broker begins a new era in all of them, before there are clients,
so nothing has to be done when a message is appended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base import eras
from harebell.base.ports import Store
from harebell.model.queue.offsets import ERAS, OFFSET
from harebell.model.resource import precondition, rendered

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue

ROWS = "era"
"""The kind of their definitions; the key is the identity of the log."""
STREAM = "stream"


class Histories:
    """The eras of the logs of all queues.

    Args:
        store: the store with the definitions.
    """

    def __init__(self, store: Store) -> None:
        self._definitions = store.definitions
        self._new_era = store.new_era
        self._eras: dict[str, str] = {}

    def restore(self, queues: Iterable[Queue]) -> list[str]:
        """Begin a new era in every log that has some, and in every stream.

        Args:
            queues: all restored queues.

        Returns:
            A log line for each stored offset whose messages are lost.
        """
        lost: list[str] = []
        rows = self._definitions.load(ROWS)
        known = {identity: fields["list"] for (identity,), fields in rows}
        for queue in queues:
            if queue.kind == STREAM or queue.identity in known:
                self._begin(queue, known.pop(queue.identity, ""))
            if queue.kind == STREAM:
                stream: Any = queue
                lost += stream.cut_tracking()
        # Rows whose queue is gone: a crash came between the removal of the queue and of its row.
        for identity in known:
            self._definitions.drop(ROWS, (identity,))
        return lost

    def of(self, queue: Queue) -> str:
        """Return the eras of a queue's positions; the caller answers when they are on disk.

        Raises:
            Refusal: the queue keeps no messages.
        """
        if queue.identity not in self._eras:
            self._begin(queue, "")
        return self._eras[queue.identity]

    def check_offset(self, queue: Queue, arguments: Mapping[str, Any]) -> None:
        """Refuse a consumer whose offset comes from numbers that the log does not have.

        Raises:
            Refusal: PRECONDITION_FAILED, with the offset where it can go on.
        """
        given, offset = arguments.get(ERAS), arguments.get(OFFSET)
        if not given:
            return
        if type(offset) is not int:
            raise precondition(
                f"invalid arg '{ERAS}' for {rendered('queue', queue.name, queue.vhost)}: it needs "
                f"an integer in '{OFFSET}'"
            )
        end = queue.span(0).end
        # Up to here the client and this log agree on what the offsets mean.
        shared = min(eras.shared_until(given, self.of(queue)), end)
        if shared < offset:
            raise precondition(
                f"data loss: {offset - shared} offsets before {offset} are lost, and "
                f"{min(offset, end) - shared} of them belong to other messages: the broker's data "
                f"is of an older date. Go on with {OFFSET} {shared}, in "
                f"{rendered('queue', queue.name, queue.vhost)}"
            )

    def made(self, queue: Queue) -> None:
        """Begin the first era of a new stream."""
        if queue.kind == STREAM:
            self._begin(queue, "")

    def unstore(self, queue: Queue) -> None:
        """Remove the row of a queue that is deleted."""
        if queue.identity in self._eras and queue.durable:
            self._definitions.drop(ROWS, (queue.identity,))

    def gone(self, queue: Queue) -> None:
        """Forget the eras of a queue that is not stored any more."""
        self._eras.pop(queue.identity, None)

    def _begin(self, queue: Queue, text: str) -> None:
        text = eras.continued(text, self._new_era(), queue.span(0).end, 0)
        if queue.durable:
            self._definitions.put(ROWS, (queue.identity,), {"list": text})
        self._eras[queue.identity] = text

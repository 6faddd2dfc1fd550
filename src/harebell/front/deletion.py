"""A queue or an exchange with many bindings is deleted in slices: the bindings, then itself.

What the peer sends meanwhile waits, so its commands keep their order. The conditions of the
deletion hold at the beginning and at the end: a queue that has to be empty and is not any more
stays, without the bindings that are gone by then.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.errors import Refusal
from harebell.front.scanned import ScannedLink
from harebell.model.exchange import Exchange
from harebell.model.queue.kind import Queue
from harebell.model.vhost import VHost


class Deletion:
    """One deletion.

    Args:
        vhost: of the thing.
        thing: what is deleted; None when there is nothing.
        finish: deletes it without bindings, and answers.
        failed: takes a refusal that comes later than the command.

    Attributes:
        late: whether it goes on, or went on, in another turn than that of the command.
    """

    def __init__(
        self,
        vhost: VHost,
        thing: Queue | Exchange | None,
        finish: Callable[[], object],
        failed: Callable[[Refusal], object],
    ) -> None:
        self._vhost = vhost
        self._thing = thing
        self._finish = finish
        self._failed = failed
        self.late = False

    def perform(self, link: ScannedLink) -> None:
        """Do it, for the connection that asks for it."""
        link.perform(self._step)

    def _step(self) -> bool:
        if self._thing is not None and not self._vhost.unbind_some(self._thing):
            self.late = True
            return False
        try:
            self._finish()
        except Refusal as refusal:
            if not self.late:
                raise
            self._failed(refusal)
        return True

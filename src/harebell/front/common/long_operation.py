"""A command that may take several turns; what it is refused late is told as if it had been at once.

What the peer sends meanwhile waits, so its commands keep their order. The operation goes on when
the peer is gone.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.errors import ProtocolError, Refusal
from harebell.base.work import Step
from harebell.front.common.framed_connection import FramedConnection
from harebell.model.exchange import Exchange
from harebell.model.queue.kind import Queue
from harebell.model.vhost import VHost


class LongOperation:
    """One such command.

    Args:
        step: does a slice, and at the end of the last one what is to follow, like a reply.
        failed: takes a refusal that comes later than the command.

    Attributes:
        late: whether it goes on, or went on, in another turn than that of the command.
    """

    def __init__(self, step: Step, failed: Callable[[Exception], object]) -> None:
        self._step = step
        self._failed = failed
        self.late = False

    def perform(self, link: FramedConnection) -> None:
        """Do it, for the connection that asks for it."""
        link.perform(self._try)

    def _try(self) -> bool:
        try:
            done = self._step()
        except (Refusal, ProtocolError) as error:
            if not self.late:
                raise
            self._failed(error)
            return True
        self.late = self.late or not done
        return done


def deletion(vhost: VHost, thing: Queue | Exchange | None, finish: Callable[[], object]) -> Step:
    """The steps that delete what may have many bindings: these first.

    The conditions of the deletion hold at the beginning and at the end: a queue that has to be
    empty and is not any more stays, without the bindings that are gone by then.

    Args:
        vhost: of the thing.
        thing: what is deleted; None when there is nothing.
        finish: deletes it without bindings, and answers.
    """

    def step() -> bool:
        if thing is not None and not vhost.unbind_some(thing):
            return False
        finish()
        return True

    return step


def exchange_deletion(
    vhost: VHost,
    name: str,
    exchange: Exchange | None,
    answer: Callable[[], object] | None = None,
) -> Step:
    """The steps that delete an exchange, unless another has its name by then.

    Args:
        vhost: of the exchange.
        name: of the exchange.
        exchange: None when there is none of that name.
        answer: what follows; None for nothing.
    """

    def finish() -> None:
        if vhost.exchanges.get(name) is exchange:
            vhost.delete_exchange(name)
        if answer is not None:
            answer()

    return deletion(vhost, exchange, finish)

"""A command that may take several turns.

What the peer sends meanwhile waits, so its commands keep their order. A refusal in a later turn is
told like one in the first. The operation goes on when the peer is gone.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.errors import ProtocolError, Refusal
from harebell.base.work import Step
from harebell.front.common.framed_connection import FramedConnection


class LongOperation:
    """A command in slices.

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

    def perform(self, connection: FramedConnection) -> None:
        """Start the operation on the connection that asked for it."""
        connection.perform(self._try)

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

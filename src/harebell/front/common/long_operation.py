"""A command that may take several turns.

Further input of the peer waits, so its commands keep their order. A refusal in a later turn is
sent like one in the first. The operation continues after the end of the connection.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.base.errors import ProtocolError, Refusal
from harebell.base.work import Step
from harebell.front.common.base_connection import BaseConnection


class LongOperation:
    """A command in slices.

    Args:
        step: does a slice; the last one also does what follows, such as a reply.
        failed: called with a refusal in a later turn.

    Attributes:
        late: whether it has continued in a later turn.
    """

    def __init__(self, step: Step, failed: Callable[[Exception], object]) -> None:
        self._step = step
        self._failed = failed
        self.late = False

    def perform(self, connection: BaseConnection) -> None:
        """Start the operation on the connection of the command."""
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

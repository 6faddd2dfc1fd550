"""What all connections of a broker share: who has output to write, who is held back.

The shell asks the hub once per turn. Holding publishers back is AMQP's business (who is told, and
what), so it is decided here and not in the shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.gauge import Gauge

if TYPE_CHECKING:
    from harebell.front.session09.connection import Connection


class Hub:
    """The connections of one broker.

    Args:
        gauge: the memory that queued messages take.

    Attributes:
        dirty: connections with something for the shell to do, each once.
        connections: all that are connected.
        blocked: those not read because memory is over the watermark.
    """

    def __init__(self, gauge: Gauge) -> None:
        self.gauge = gauge
        self.dirty: list[Connection] = []
        self.connections: set[Connection] = set()
        self.blocked: list[Connection] = []

    def take_dirty(self) -> list[Connection]:
        """The connections with something to do; none are dirty afterwards."""
        taken, self.dirty = self.dirty, []
        for connection in taken:
            connection.dirty = False
        return taken

    def relieve(self) -> None:
        """Let publishers go again when memory has fallen below the low mark."""
        self.gauge.crossed()
        if self.blocked and not self.gauge.over:
            released, self.blocked = self.blocked, []
            for connection in released:
                connection.unblock()

"""What clients of several brokers over one store saw, and what must be true of it.

Messages are judged by the ledger of `tests/robustness/ledger.py`, over all brokers as over the
lives of one: nothing confirmed is lost, nothing acknowledged in a committed transaction comes back,
order is kept, transactions are whole. Here owners are judged as well, by when their clients heard
of them:

    broker 1   hello . . confirm . . delivery . (its lease ends)
    broker 2                                        hello . . delivery . .
    fault                                                . . . . delivery of broker 1

A connection speaks for the broker that gave its name at the beginning, for a tenure that lasts from
the first confirm or delivery of the connection to its last. Tenures of two brokers never overlap.
What a client reads later than it came would look like a late delivery, so a test reads what has
come before it lets another broker go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from tests.robustness.clients import ALL_QUEUES, Connection
from tests.robustness.ledger import Verdict
from tests.robustness.load import Load

_SHOWN = 5
_ON_ITS_WAY_SECONDS = 0.1
"""What a broker wrote before its lease ended may lie in a buffer of its process, which sends it
first when it goes on after a stop. A broker that still serves does so for longer."""


@dataclass(slots=True)
class Tenure:
    """What one connection heard of the broker that it belongs to.

    Args:
        owner: the name of the broker.
        first: when it heard the first confirm or delivery, in seconds.
        last: when it heard the last.
    """

    owner: str
    first: float
    last: float


class Tenures:
    """Who has served clients, and when."""

    def __init__(self) -> None:
        self._of: dict[Hashable, Tenure] = {}

    def speaks(self, connection: Hashable, owner: str, at: float) -> None:
        """A confirm, a delivery or the answer to a commit was read.

        Args:
            connection: where; another one after every reconnection.
            owner: the broker at its other end.
            at: when, in seconds that never go back.
        """
        tenure = self._of.get(connection)
        if tenure is None:
            self._of[connection] = Tenure(owner, at, at)
        else:
            tenure.last = at

    @property
    def owners(self) -> list[str]:
        """The brokers in the order in which they served, each change of them once."""
        ordered = [each.owner for each in sorted(self._of.values(), key=lambda each: each.first)]
        return [name for at, name in enumerate(ordered) if at == 0 or ordered[at - 1] != name]

    def overlaps(self) -> list[str]:
        """A sentence for each pair of brokers that served at the same time."""
        found = []
        current: Tenure | None = None
        for each in sorted(self._of.values(), key=lambda each: each.first):
            late = 0.0 if current is None else current.last - each.first
            if current is not None and current.owner != each.owner and late > _ON_ITS_WAY_SECONDS:
                found.append(
                    f"{current.owner!r} still served {late * 1000:.0f} ms after {each.owner!r} "
                    "had begun to"
                )
            if current is None or each.last > current.last:
                current = each
        return found


class History:
    """A load over brokers that take turns, with everything that its clients saw.

    Args:
        seed: decides what is sent.
        queues: which queues of the load to use.
        clock: seconds that never go back.

    Attributes:
        load: publishes, consumes, and has the ledger.
        tenures: who served.
    """

    def __init__(
        self,
        seed: int,
        queues: tuple[str, ...] = ALL_QUEUES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.load = Load(seed, queues)
        self.tenures = Tenures()
        self._clock = clock
        self.load.accounts.heard = self._heard

    def _heard(self, link: Connection) -> None:
        self.tenures.speaks(link, link.broker, self._clock())

    def read_what_has_come(self) -> None:
        """Read everything that lies in the sockets of the run that goes on."""
        for link in self.load.links:
            link.read_if_any()

    def drain(self, port: int, where: str = "") -> Verdict:
        """Take what is left in the queues, and judge everything.

        Args:
            port: of the broker that owns the store.
            where: how to come back here, for a failure.
        """
        verdict = self.load.drain(port, where)
        found = self.tenures.overlaps()
        assert not found, f"{where}: two owners\n  " + "\n  ".join(found[:_SHOWN])
        return verdict

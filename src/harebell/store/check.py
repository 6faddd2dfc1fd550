"""Check a data directory that no broker uses: its content and its damage.

Every log is opened by the code that a broker uses, either for real, which repairs what can be
repaired, or over a `Shadow`, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from harebell.base.clock import Clock
from harebell.base.errors import DiskError
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import (
    BRANCH_LOG,
    JOB_LOG,
    PUBLISHER_LOG,
    Definitions,
    Files,
    Log,
)
from harebell.store.disk import QUEUES, DiskStore
from harebell.store.dry_run_files import Shadow, Watched
from harebell.store.log.memory import MemoryDefinitions
from harebell.store.owners import claims
from harebell.store.quarantine import DIRECTORY

_DIGITS = frozenset("0123456789abcdef")
_IDENTITY_DIGITS = 32
TRANSACTIONS = "transactions"
"""The kind of the log of prepared transactions."""
PUBLISHERS = "publishers"
"""The kind of the log of named publishers."""
JOBS = "jobs"
"""The kind of the log of jobs."""
_OWN = {
    BRANCH_LOG: ("", "prepared transactions", TRANSACTIONS),
    PUBLISHER_LOG: ("", "publishers", PUBLISHERS),
    JOB_LOG: ("", "jobs", JOBS),
}
"""Logs that do not belong to a queue."""
_OWN_KINDS = frozenset(kind for _, _, kind in _OWN.values())


@dataclass
class Holding:
    """The content of one queue, over all its logs.

    Args:
        identity: the identity of the queue.
        vhost: the queue's vhost; "" if the logs belong to no queue.
        name: the queue's name.
        kind: its kind, such as "classic"; "" if the logs belong to no queue.

    Attributes:
        logs: the directories of its logs.
        messages: the number of messages.
        unacknowledged: how many of them may have been delivered before.
        byte_count: the size of its segments in bytes.
        segments: the number of segments.
        damage: a sentence for each damage.
        harmless: a sentence for each trace of an abrupt end.
        quarantined: the copies that were made, or would be made.
        unread: a sentence for each log that the disk fails to read.
    """

    identity: str
    vhost: str = ""
    name: str = ""
    kind: str = ""
    logs: list[str] = field(default_factory=list)
    messages: int = 0
    unacknowledged: int = 0
    byte_count: int = 0
    segments: int = 0
    damage: list[str] = field(default_factory=list)
    harmless: list[str] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @property
    def of_broker(self) -> bool:
        """True for records of the broker itself, which are no messages of a queue."""
        return self.kind in _OWN_KINDS


class Survey:
    """The check of a data directory.

    Args:
        files: the directory; the caller owns its lock.
        definitions: the definitions; None if they cannot be read.
        was_clean: whether the last process closed in good order.
        mend: open the logs for real.

    Attributes:
        remarks: sentences for traces of an abrupt end that belong to no single queue.
    """

    def __init__(
        self,
        files: Files,
        definitions: Definitions | None,
        *,
        was_clean: bool = False,
        mend: bool = False,
    ) -> None:
        self._files = Watched(files if mend else Shadow(files, QUEUES))
        self._mend = mend
        self._was_clean = was_clean
        self._reports: list[tuple[str, str]] = []
        self._claims = {} if definitions is None else claims(definitions)
        # Logs that are being deleted; without definitions the owner of a log is unknown.
        self._passing = _dropped(definitions)
        self._store = DiskStore(
            self._files,
            definitions or MemoryDefinitions(),
            Gauge(),
            Clock(0),
            bytes,
            lambda level, text: self._reports.append((level, text)),
            clean=was_clean,
            # An index would stand for records that this check has to look at.
            indexes=False,
        )
        self.remarks = [text for _, text in self._reports]

    def holdings(self, *, vhost: str = "", queue: str = "") -> Iterator[Holding]:
        """Yield the content of every queue in the order of declaration, then logs without a queue.

        Args:
            vhost: only queues of this vhost; "" for all.
            queue: only queues of this name; "" for all.

        Raises:
            DiskError: the disk fails to read a log under repair; those before it are repaired.
            StoreError: the disk refuses.
        """
        for identity, logs in self._directories().items():
            unclaimed = ("", "", "")
            vhost_name, name, kind = self._claims.get(identity, _OWN.get(identity, unclaimed))
            if vhost not in ("", vhost_name) or queue not in ("", name):
                continue
            yield self._holding(Holding(identity, vhost_name, name, kind), logs)

    def unclaimed(self) -> Iterator[Holding]:
        """Yield the logs that belong to no queue.

        Raises:
            StoreError: the disk refuses.
        """
        for identity, logs in self._directories().items():
            if identity not in self._claims and identity not in _OWN:
                yield self._holding(Holding(identity), logs)

    def _directories(self) -> dict[str, list[str]]:
        """Return the directories of logs by their identities, those of queues first."""
        directories: dict[str, list[str]] = {identity: [] for identity in self._claims}
        there = self._files.names(QUEUES)
        for directory in [*there, *(self._store.expected.keys() - set(there))]:
            directories.setdefault(directory.partition("-")[0], []).append(directory)
        return directories

    def _holding(self, holding: Holding, logs: list[str]) -> Holding:
        """Look at the logs of a holding."""
        for directory in sorted(logs, key=_suffix):
            self._check_log(directory, holding)
        lost = not holding.kind and self._passing is not None
        if lost and holding.messages and holding.identity not in (self._passing or ()):
            holding.damage.append(
                f"{holding.messages} messages belong to no queue: `harebell store adopt DIRECTORY "
                f"{holding.identity} --queue NAME` makes a queue of them"
            )
        return holding

    def messages(self, holding: Holding) -> Iterator[tuple[int, Message, bool]]:
        """Yield the messages of a queue: position, message, whether it was delivered before.

        Messages that cannot be read are left out; the damage of the holding has them.
        """
        for identity in holding.logs:
            log = self._store.logs[identity]
            position, end, seen = log.first(), log.end(), log.seen()
            while position < end:
                message = log.read(position)
                if message is not None:
                    yield position, message, position < seen
                position = log.next(position + 1)

    def quarantine(self) -> list[str]:
        """Return the names of the files in quarantine."""
        return self._files.names(DIRECTORY)

    def close(self) -> None:
        """Close all files."""
        self._store.shut()

    def _check_log(self, identity: str, holding: Holding) -> None:
        if not _is_identity(identity):
            holding.damage.append(f"{QUEUES}/{identity} is no directory of a log")
            return
        self._reports.clear()
        self._files.arrived.clear()
        try:
            log = self._store.open_log(identity, durable=True)
        except DiskError as error:
            if self._mend:
                raise
            holding.unread.append(str(error))
            self._reports.clear()
            return
        for level, text in self._reports:
            # An orderly close leaves no torn records.
            harmless = level == "warning" and not self._was_clean
            (holding.harmless if harmless else holding.damage).append(text)
        self._reports.clear()
        holding.quarantined += self._files.arrived
        holding.logs.append(identity)
        holding.messages += log.live()
        holding.unacknowledged += _below(log, log.seen())
        holding.byte_count += log.byte_count()
        holding.segments += len(self._store.logs[identity].segments)


def _dropped(definitions: Definitions | None) -> set[str] | None:
    """Return the identities of logs that are being deleted; None if the definitions are lost."""
    if definitions is None:
        return None
    return {key[0].partition("-")[0] for key, _ in definitions.load("dropped")}


def _is_identity(directory: str) -> bool:
    digits, _, suffix = directory.partition("-")
    known = len(digits) == _IDENTITY_DIGITS and _DIGITS.issuperset(digits)
    return known and (not suffix or suffix.isdecimal())


def _suffix(directory: str) -> tuple[str, int]:
    digits, _, suffix = directory.partition("-")
    return digits, int(suffix) if suffix.isdecimal() else -1


def _below(log: Log, limit: int) -> int:
    """Return the number of messages below a position, at most up to a limit."""
    count, position = 0, log.first()
    while position < limit:
        count += 1
        position = log.next(position + 1)
    return count

"""A store in memory that refuses one of its writes, to see what is left of the change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import BRANCH_LOG, JOB_LOG, PUBLISHER_LOG, Log
from harebell.store.log.memory import MemoryDefinitions, MemoryLog, MemoryStore
from harebell.store.tables import TABLES
from harebell.wire.v09.fields import encode_table

LOGS = {BRANCH_LOG: "branch", PUBLISHER_LOG: "publisher", JOB_LOG: "job"}
"""The logs of the broker itself."""
WHY = "the store refuses this change"


class FailingDefinitions(MemoryDefinitions):
    """Definitions that count changes, those of the broker's logs too, and refuse one of them.

    Attributes:
        calls: the changes since the last `watch`, such as "put queue" and "append job".
        fails_at: which of them is refused; -1 for none.
    """

    def __init__(self) -> None:
        super().__init__(encode_table)
        self.watch()

    def watch(self, fails_at: int = -1) -> None:
        """Count anew."""
        self.calls: list[str] = []
        self.fails_at = fails_at

    def put(self, kind: str, key: tuple[str, ...], fields: Mapping[str, Any]) -> None:
        """Add or replace a definition."""
        self.count(f"put {kind}")
        super().put(kind, key, fields)

    def drop(self, kind: str, key: tuple[str, ...]) -> None:
        """Remove a definition."""
        self.count(f"drop {kind}")
        super().drop(kind, key)

    def rows(self) -> dict[str, dict[tuple[str, ...], Mapping[str, Any]]]:
        """Everything that is stored."""
        return {kind: dict(self.load(kind)) for kind in TABLES}

    def count(self, change: str) -> None:
        """Note a change, or refuse it."""
        self.calls.append(change)
        if len(self.calls) - 1 == self.fails_at:
            raise Refusal(ErrorKind.PRECONDITION_FAILED, WHY)


class _FailingLog(MemoryLog):
    """A log of the broker whose records are counted, and of which one is refused."""

    __slots__ = ("_definitions", "_kind")

    def __init__(self, gauge: Gauge, kind: str, definitions: FailingDefinitions) -> None:
        super().__init__(gauge)
        self._kind = kind
        self._definitions = definitions

    def append(self, message: Message) -> int:
        """Append a record."""
        self._definitions.count(f"append {self._kind}")
        return super().append(message)


class FailingStore(MemoryStore):
    """A store with such definitions and logs."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Gauge())
        self.definitions: FailingDefinitions = FailingDefinitions()

    def open_log(
        self, identity: str, *, durable: bool, keep_all: bool = False, segment_bytes: int = 0
    ) -> Log:
        """Return an empty log."""
        if identity in LOGS:
            return _FailingLog(self._gauge, LOGS[identity], self.definitions)
        return super().open_log(identity, durable=durable)

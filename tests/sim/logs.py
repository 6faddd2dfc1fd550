"""Logs on a simulated disk, with accounts of what must be in them whatever happens to the disk.

A `Life` is one run of a process over a disk: a store, its logs, and what was confirmed. The
`Accounts` outlive it. `Life.look` reads everything that is there and judges it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.ports import Log
from harebell.store.disk import DiskStore
from harebell.store.log.loaded_offsets import LoadedOffsets
from tests.robustness.ledger import Ledger
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk

QUEUE = "queue"
SEGMENT_SIZE = 4096
AHEAD_FROM = 512
"""Far below what brokers have, so that space is written ahead of the records of small scripts."""
OFFSETS_BYTES = 200
"""Far below what brokers have, so that offsets of records are left out of memory."""
OFFSETS_MIN_MESSAGES = 4
"""Far below what brokers have, so that the segments of small scripts have index files."""
START_MS = 1_700_000_000_000

Picture = list[tuple[str, int, bytes, int]]
"""What is in the logs: identity, position, everything of the message, count of failures."""


class Stopped(Exception):
    """A batch failed: the broker reports it and exits."""


def octets_of(message: Message) -> bytes:
    """Everything of a message that must come back unchanged."""
    marks = (message.delivery_mode, message.priority & 255, message.has_headers, message.family)
    head = f"{message.exchange}|{message.routing_key}|{marks}|{len(message.raw)}|".encode()
    return head + message.raw + message.body


def number_of(message: Message) -> int | None:
    """Who a message says it is."""
    text = message.body.partition(b":")[0]
    return int(text) if text.isdigit() else None


def make_message(number: int, size: int, persistent: bool, rng: Random) -> Message:
    """A message with its number in front; `size` octets follow."""
    raw = rng.randbytes(rng.choice((2, 3, 30)))
    priority = rng.choice((-1, -1, 0, 9))
    mode = PERSISTENT if persistent else rng.choice((0, 1))
    properties = Properties(raw, mode, priority, rng.random() < 0.3)
    body = b"%d:" % number + rng.randbytes(size)
    return Message(rng.choice(("", "amq.topic", "wörter")), f"key.{number % 7}", properties, body)


class Accounts:
    """What is known of every log over all lives.

    Attributes:
        ledger: what was sent, confirmed, delivered and settled; a log is a queue.
        numbers: how many messages there were.
        options: of every log that was ever opened, what it was opened with.
        places: where a message of a log stands, and when it came, in milliseconds.
        at: which message was put at a position of a log last.
        counts: the counts of failures that may be found.
        handed: below which position messages of a log were handed out.
    """

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.numbers = 0
        self.options: dict[str, dict[str, Any]] = {}
        self.places: dict[tuple[str, int], tuple[int, int]] = {}
        self.at: dict[tuple[str, int], int] = {}
        self.counts: dict[tuple[str, int], set[int]] = {}
        self.handed: dict[str, int] = {}

    def copy(self) -> Accounts:
        """Accounts that go on from here on their own."""
        other = Accounts()
        other.ledger = self.ledger.copy()
        other.numbers = self.numbers
        other.options = dict(self.options)
        other.places = dict(self.places)
        other.at = dict(self.at)
        other.counts = {key: set(found) for key, found in self.counts.items()}
        other.handed = dict(self.handed)
        return other


class Life:
    """One process over a disk.

    Args:
        disk: its disk.
        definitions: which logs there are: rows of the kind "queue".
        accounts: what is known from before.
        number: which life it is; later ones have later times.
        clean: whether the last one says that it ended in good order.
        ahead_from: the size of a segment from which space is written ahead of its records.

    Attributes:
        reports: what the store reported, with levels.
        held: for every log what was delivered and not settled: positions and numbers.
        batch: the batch that is under way.
    """

    def __init__(
        self,
        disk: SimDisk,
        definitions: SimDefinitions,
        accounts: Accounts,
        number: int = 0,
        *,
        clean: bool = False,
        ahead_from: int = AHEAD_FROM,
    ) -> None:
        self.disk = disk
        self.definitions = definitions
        self.accounts = accounts
        self.number = number
        self.clock = Clock(START_MS + number * 1_000_000)
        self.reports: list[tuple[str, str]] = []
        self._made = Random(number)
        self.store = DiskStore(
            disk,
            definitions,
            Gauge(),
            self.clock,
            self._made.randbytes,
            lambda level, text: self.reports.append((level, text)),
            clean=clean,
            ahead_from=ahead_from,
        )
        self.store.offsets = LoadedOffsets(
            disk, self.store.handles, OFFSETS_BYTES, OFFSETS_MIN_MESSAGES
        )
        self.logs: dict[str, Log] = {}
        self.cursors: dict[str, int] = {}
        self.held: dict[str, list[tuple[int, int]]] = {}
        self.batch: Any = None
        self._confirming: list[tuple[int, int]] = []
        self._settling: list[tuple[str, int]] = []
        self._finalizing: list[tuple[int, list[tuple[str, int]]]] = []
        accounts.ledger.restarts()

    # --- logs -----------------------------------------------------------------------------------

    def recover(self) -> None:
        """Do what a broker does at its start: open every log that is defined."""
        defined = list(self.definitions.load(QUEUE))
        self.store.clean(identity for (identity,), _ in defined)
        for (identity,), fields in defined:
            self._open(identity, fields)

    def new_log(self, *, keep_all: bool = False, segment_bytes: int = SEGMENT_SIZE) -> str:
        """Declare a durable queue with a log; returns its identity."""
        identity = self.store.new_identity()
        fields = {"keep_all": keep_all, "segment_bytes": segment_bytes}
        self._open(identity, fields)
        self.accounts.options[identity] = fields
        self.definitions.put(QUEUE, (identity,), fields)
        self.store.commit.changed()
        return identity

    def _open(self, identity: str, fields: Any) -> None:
        log = self.store.open_log(identity, durable=True, **fields)
        self.logs[identity] = log
        self.cursors[identity] = log.first()
        self.held[identity] = []

    def delete_log(self, identity: str) -> None:
        """The queue is deleted."""
        self.definitions.drop(QUEUE, (identity,))
        self.store.commit.changed()
        self.logs.pop(identity).delete()
        del self.cursors[identity], self.held[identity]
        self.accounts.ledger.drops(identity)

    # --- messages -------------------------------------------------------------------------------

    def append(self, identity: str, size: int, persistent: bool, rng: Random) -> int:
        """A publish; returns the message's number."""
        number = self.accounts.numbers
        self.accounts.numbers += 1
        message = make_message(number, size, persistent, rng)
        kept = persistent or self.accounts.options[identity]["keep_all"]
        self.accounts.ledger.sends(
            number, octets_of(message), (identity,), identity, persistent=kept
        )
        position = self.logs[identity].append(message)
        self.accounts.places[identity, number] = (position, self.clock.ms)
        self.accounts.at[identity, position] = number
        self._confirming.append((self.store.commit.ticket, number))
        return number

    def transact(self, puts: list[tuple[str, int]], takes: list[str], rng: Random) -> None:
        """A transaction.

        Args:
            puts: the log and the size of every message that it publishes.
            takes: the log of every message that it acknowledges, the oldest that was delivered.
            rng: decides what the messages are like.
        """
        self.store.commit.joint = True
        put = [(identity, self.append(identity, size, True, rng)) for identity, size in puts]
        taken = [(identity, self.settle(identity, 0)) for identity in takes if self.held[identity]]
        self.accounts.ledger.transacts(put, taken)

    def deliver(self, identity: str) -> bool:
        """Hand the next message out; False when there is none."""
        log = self.logs[identity]
        position = log.next(self.cursors[identity])
        if position == log.end():
            return False
        self.cursors[identity] = position + 1
        message = log.read(position)
        if message is None:
            # It cannot be read now: it stays where it is.
            return True
        log.see(position + 1)
        handed = self.accounts.handed.get(identity, 0)
        self.accounts.handed[identity] = max(handed, position + 1)
        number = number_of(message)
        self.accounts.ledger.delivers(
            identity,
            number,
            octets_of(message),
            redelivered=position < log.seen(),
            reader=self.number,
        )
        assert number is not None
        self.held[identity].append((position, number))
        return True

    def settle(self, identity: str, index: int) -> int:
        """One of the messages that were delivered is done with; returns its number."""
        position, number = self.held[identity].pop(index)
        self.logs[identity].settle(position)
        self._settled(identity, number)
        return number

    def settle_all(self, identity: str) -> None:
        """A purge: everything that is there is done with."""
        log = self.logs[identity]
        for position in self.positions(identity):
            self._settled(identity, self.accounts.at[identity, position])
        log.settle_range(log.first(), log.end())
        self.held[identity].clear()

    def retain(self, identity: str, octets: int) -> None:
        """Let old segments go, as a stream does."""
        log = self.logs[identity]
        before = list(self.positions(identity))
        first = log.retain(octets, 0)
        for position in before:
            if position < first:
                self._settled(identity, self.accounts.at[identity, position])
        self.held[identity] = [each for each in self.held[identity] if each[0] >= first]

    def count(self, identity: str, index: int, count: int) -> None:
        """A delivery has failed again."""
        position, number = self.held[identity][index]
        self.accounts.counts.setdefault((identity, number), {0}).add(count)
        self.logs[identity].set_count(position, count)

    def _settled(self, identity: str, number: int) -> None:
        self.accounts.ledger.settles(identity, number)
        self._settling.append((identity, number))

    def sync_soon(self, identity: str) -> None:
        """What was settled in a log must be part of the next commit."""
        self.logs[identity].sync_soon()
        mine = [item for item in self._settling if item[0] == identity]
        self._settling = [item for item in self._settling if item[0] != identity]
        self._finalizing.append((self.store.commit.ticket, mine))

    # --- commits --------------------------------------------------------------------------------

    def gather(self) -> None:
        """Begin a batch, unless one is under way."""
        if self.batch is None:
            self.batch = self.store.commit.gather()

    def perform(self) -> bool:
        """Do the batch and finish it; False when it stalls. Raises `Stopped` when it failed."""
        batch = self.batch
        if batch is None:
            return True
        batch.perform()
        if batch.failed is not None:
            raise Stopped(repr(batch.failed))
        if batch.stalled is not None:
            return False
        self.batch = None
        self.store.commit.finish(batch)
        self._finished()
        return True

    def commit(self) -> bool:
        """Everything so far is on disk, when this returns True."""
        if not self.perform():
            return False
        self.gather()
        return self.perform()

    def _finished(self) -> None:
        done = self.store.commit.done
        for ticket, number in self._confirming:
            if ticket <= done:
                self.accounts.ledger.confirms(number)
        self._confirming = [each for each in self._confirming if each[0] > done]
        for ticket, items in self._finalizing:
            if ticket <= done:
                for identity, number in items:
                    self.accounts.ledger.settles(identity, number, durable=True)
        self._finalizing = [each for each in self._finalizing if each[0] > done]

    def stop(self, *, describes: bool = True) -> bool:
        """End in good order, with indexes for the next start; False when the disk stalls."""
        if not self.perform():
            return False
        for identity in self.logs:
            self.sync_soon(identity)
        self.store.close()
        for _ in range(5):
            self.gather()
            if self.batch is None:
                if describes:
                    self.store.describe()
                self.store.shut()
                return True
            if not self.perform():
                return False
        raise AssertionError("a store that is closed has something to write again and again")

    # --- judging --------------------------------------------------------------------------------

    def positions(self, identity: str) -> Iterable[int]:
        """Where the live messages of a log stand."""
        log = self.logs[identity]
        position = log.first()
        while position < log.end():
            yield position
            position = log.next(position + 1)

    def look(self, where: str, *, unreadable: int = 0) -> Picture:
        """Read every log from its beginning, and judge what is there.

        Args:
            where: how to come back here; it leads the message of what is wrong.
            unreadable: how many messages may be kept back because they cannot be read.
        """
        picture: Picture = []
        for identity in self.logs:
            picture += self._look_at(identity, where, unreadable)
        return picture

    def judge(self, where: str, picture: Picture) -> None:
        """Compare what is there with the accounts, as if everything was delivered now."""
        ledger = self.accounts.ledger.copy()
        for identity, position, octets, count in picture:
            number = self.number_in(octets)
            again = position < self.logs[identity].seen()
            ledger.delivers(identity, number, octets, redelivered=again, reader=self.number)
            if number is not None:
                ledger.keeps(identity, number)
                self._judge_details(where, identity, number, position, count)
        ledger.judge().check(where)

    @staticmethod
    def number_in(octets: bytes) -> int | None:
        """Who a message of a picture says it is."""
        head = octets.split(b"|", 4)
        text = head[4][int(head[3]) :].partition(b":")[0]
        return int(text) if text.isdigit() else None

    def _look_at(self, identity: str, where: str, unreadable: int) -> Picture:
        log = self.logs[identity]
        found: Picture = []
        missing = 0
        for position in self.positions(identity):
            message = log.read(position)
            if message is None:
                missing += 1
            else:
                found.append((identity, position, octets_of(message), log.count(position)))
        assert missing <= unreadable, f"{where}: {missing} messages of {identity} cannot be read"
        assert len(found) + missing == log.live(), f"{where}: {identity} counts {log.live()}"
        return found

    def _judge_details(
        self, where: str, identity: str, number: int, position: int, count: int
    ) -> None:
        place = self.accounts.places.get((identity, number))
        assert place is not None, f"{where}: message {number} is in the wrong log"
        assert position == place[0], (
            f"{where}: message {number} moved from {place[0]} to {position}"
        )
        time = self.logs[identity].time_of(position)
        assert time == place[1], f"{where}: message {number} has another time"
        counts = self.accounts.counts.get((identity, number), {0})
        assert count in counts, f"{where}: message {number} failed {count} times, not {counts}"

    def damages(self) -> list[str]:
        """What the store reported that is more than a remark."""
        return [text for level, text in self.reports if level in ("error", "warning")]

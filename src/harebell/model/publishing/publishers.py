"""Named publishers: the numbers that they have published, so that repeats are dropped.

For each publisher the broker keeps the next number and the run that may publish. The index is a log
of the broker. An entry is part of the same commit as its messages, and a crash keeps that commit
whole or not at all, so entries and messages always agree.

    an entry in the log   all numbers little-endian

    kind  1 staged batches, 2 publishing ids        u8
    next  the smallest number not published       u64
    used  milliseconds since 1970                   u64
    vhost, user, name                               each after its length as u16
    runs  digests of the runs, the current one last 16 bytes each

    while rows of an uncommitted batch are in logs

    kind  3                                         u8
    batch                                           u64
    used, vhost, user, name                         as above
    logs  each: identity after its length as u16, position of its first row as u64

A start removes the rows of such a batch from these logs: it was never confirmed.

A later record of an entry replaces the earlier one. A publisher belongs to its user: no other user
can advance its number and so cause messages to be dropped.
"""

from __future__ import annotations

import hashlib
from struct import Struct
from typing import NamedTuple

from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.limits import PUBLISHERS_COUNT, STAGE_RUNS_COUNT
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.ports import PUBLISHER_LOG, Log, Store

STAGED = 1
"""Kind of publishers that use the class stage."""
NUMBERED = 2
"""Kind of publishers that number their messages."""

_UNFINISHED = 3

_HEAD = Struct("<BQQ")
_POSITION = Struct("<Q")
_LENGTH = Struct("<H")
_DIGEST_BYTES = 16
_RECORD = Properties(b"", delivery_mode=PERSISTENT)
_SLACK = 1_000
"""Outdated records in the log before current ones are moved to its end."""


class Key(NamedTuple):
    """The key of a publisher.

    Args:
        kind: STAGED or NUMBERED.
        vhost: the name of its vhost.
        user: the name of its user.
        name: the name that it has chosen.
    """

    kind: int
    vhost: str
    user: str
    name: str


class Entry:
    """The state of one publisher.

    Attributes:
        key: the vhost, user and name that it belongs to.
        next: the smallest number that is not published.
        runs: digests of its runs, the current one last.
        holders: the number of channels that use it now.
        position: the position of its record in the log; -1 without one.
        used: when it was used last, in milliseconds since 1970.
        changed: whether its record is outdated.
        refused: numbers below `next` that were refused.
    """

    __slots__ = ("changed", "holders", "key", "next", "position", "refused", "runs", "used")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.next = 0
        self.runs: list[bytes] = []
        self.holders = 0
        self.position = -1
        self.used = 0
        self.changed = False
        self.refused: set[int] = set()


class Publishers:
    """All publishers of a broker.

    Args:
        store: the store with the log and the group commit.
        clock: wall clock.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._commit = store.commit
        self._clock = clock
        self._kept: Log | None = None
        # In the order of their records, or of their creation.
        self._entries: dict[Key, Entry] = {}
        self._counts: dict[str, int] = {}
        self._changed: list[Entry] = []
        # The batch whose rows are being appended: its number here, its record, and its logs.
        self._batches = 0
        self._batch: tuple[Key, int] | None = None
        self._logs = 0
        self._unfinished = -1
        self._commit.closing.append(self._write_changed)

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: Key) -> Entry | None:
        """Return a known publisher, or None."""
        return self._entries.get(key)

    def entry(self, key: Key) -> Entry:
        """Return a publisher, known or new; if there are too many, remove an idle one.

        Raises:
            Refusal: RESOURCE_LOCKED, all others are in use.
        """
        found = self._entries.get(key)
        if found is None:
            if self._counts.get(key.vhost, 0) >= PUBLISHERS_COUNT:
                self._make_room(key)
            found = self._entries[key] = Entry(key)
            self._counts[key.vhost] = self._counts.get(key.vhost, 0) + 1
        found.used = self._clock.ms
        return found

    def enter(self, entry: Entry, run: str) -> None:
        """Let a run publish for a publisher from now on.

        Raises:
            Refusal: FENCED, the run was replaced by another one.
        """
        digest = _digest(run)
        if entry.runs and entry.runs[-1] == digest:
            return
        if digest in entry.runs:
            raise fenced(entry.key.name, run)
        entry.runs.append(digest)
        del entry.runs[:-STAGE_RUNS_COUNT]
        self.change(entry)

    def check(self, entry: Entry | None, name: str, run: str) -> Entry:
        """Return the publisher if that run may publish for it.

        Raises:
            Refusal: FENCED, another run has replaced it; or NOT_FOUND, it was not opened.
        """
        digest = _digest(run)
        if entry is None or not entry.runs or digest not in entry.runs:
            raise Refusal(
                ErrorKind.NOT_FOUND, f"run '{run}' of publisher '{name}' was not opened here"
            )
        if entry.runs[-1] != digest:
            raise fenced(name, run)
        return entry

    def advance(self, entry: Entry, number: int) -> None:
        """Note that all numbers up to one are published; part of the gathering commit."""
        entry.next = number + 1
        if not entry.changed:
            self.change(entry)

    def begin(self, entry: Entry, number: int) -> int:
        """Start to append the rows of a batch; one batch at a time.

        Returns:
            The value of `Commit.staging` for these rows.
        """
        assert self._batch is None, "the batch before is finished"
        entry.holders += 1
        self._batches += 1
        self._batch = (entry.key, number)
        return self._batches

    def finish(self, entry: Entry) -> None:
        """End the batch: all its rows are appended, or none; part of the gathering commit."""
        entry.holders -= 1
        self._batch = None
        self._commit.staged = []
        if self._logs:
            # If none of this is on disk yet, all of it becomes part of one commit.
            self._commit.joint = True
            self._commit.urgent = True

    def change(self, entry: Entry) -> None:
        """Store the state of a publisher with the gathering commit."""
        # A crash must not separate it from the messages in the same commit.
        self._commit.joint = True
        self._commit.urgent = True
        if not entry.changed:
            entry.changed = True
            self._changed.append(entry)

    def forget(self, key: Key) -> bool:
        """Remove a publisher; return whether it existed."""
        entry = self._entries.get(key)
        if entry is None:
            return False
        self._drop(entry)
        return True

    def vhost_gone(self, name: str) -> None:
        """Remove the publishers of a deleted vhost."""
        for entry in [each for each in self._entries.values() if each.key.vhost == name]:
            self._drop(entry)

    def restore(self) -> None:
        """Read the log; called once, before the first connection."""
        log = self._log()
        position = log.first()
        while position < log.end():
            message = log.read(position)
            entry = None if message is None else _decode(message.body)
            if entry is None:
                for identity, first in () if message is None else _rows_of(message.body):
                    self._store.take_back(identity, first)
                    # The rows and this record are removed in one commit.
                    self._commit.joint = True
                log.settle(position)
            else:
                self._take_up(log, entry, position)
            position = log.next(position + 1)

    # --- inside ---------------------------------------------------------------------------------

    def _take_up(self, log: Log, entry: Entry, position: int) -> None:
        before = self._entries.pop(entry.key, None)
        if before is None:
            vhost = entry.key.vhost
            self._counts[vhost] = self._counts.get(vhost, 0) + 1
        else:
            log.settle(before.position)
        entry.position = position
        self._entries[entry.key] = entry

    def _make_room(self, key: Key) -> None:
        idle = [
            each
            for each in self._entries.values()
            if each.key.vhost == key.vhost and not each.holders
        ]
        if not idle:
            raise Refusal(
                ErrorKind.RESOURCE_LOCKED,
                f"there is no room for publisher '{key.name}': all {PUBLISHERS_COUNT} of vhost "
                f"'{key.vhost}' are in use",
            )
        self._drop(min(idle, key=_used))

    def _drop(self, entry: Entry) -> None:
        del self._entries[entry.key]
        self._counts[entry.key.vhost] -= 1
        if entry.changed:
            self._changed.remove(entry)
        if entry.position >= 0:
            self._log().settle(entry.position)
            self._log().sync_soon()

    def _write_changed(self) -> None:
        """Store the changed entries: the gathering commit is about to be closed."""
        if len(self._commit.staged) != self._logs:
            self._write_batch()
        changed, self._changed = self._changed, []
        for entry in changed:
            entry.changed = False
            self._write(entry)
        if changed:
            self._compact()

    def _write_batch(self) -> None:
        """Store which logs have rows of the batch, or that it is finished."""
        log, before = self._log(), self._unfinished
        self._logs = len(self._commit.staged)
        self._unfinished = -1
        if self._batch is not None:
            body = _encode_batch(*self._batch, self._clock.ms, self._commit.staged)
            self._unfinished = log.append(Message("", "", _RECORD, body))
        if before >= 0:
            log.settle(before)

    def _write(self, entry: Entry) -> None:
        log, before = self._log(), entry.position
        entry.position = log.append(Message("", "", _RECORD, _encode(entry)))
        if before >= 0:
            log.settle(before)
        # After all that were stored before.
        self._entries[entry.key] = self._entries.pop(entry.key)

    def _compact(self) -> None:
        """Rewrite some old entries, so that they do not keep old segments."""
        log = self._log()
        behind = log.end() - 4 * len(self._entries) - _SLACK
        for entry in list(self._entries.values())[:4]:
            if 0 <= entry.position < behind:
                self._write(entry)

    def _log(self) -> Log:
        if self._kept is None:
            self._kept = self._store.open_log(PUBLISHER_LOG, durable=True, keep_all=True)
        return self._kept


def fenced(name: str, run: str) -> Refusal:
    """Return the refusal for a run that was replaced."""
    return Refusal(
        ErrorKind.FENCED,
        f"run '{run}' of publisher '{name}' is fenced: another run has taken its place",
    )


def _used(entry: Entry) -> int:
    return entry.used


def _digest(run: str) -> bytes:
    return hashlib.blake2b(run.encode(), digest_size=_DIGEST_BYTES).digest()


def _encode(entry: Entry) -> bytes:
    key = entry.key
    head = _HEAD.pack(key.kind, entry.next, entry.used)
    return head + texts(key.vhost, key.user, key.name) + b"".join(entry.runs)


def _encode_batch(key: Key, batch: int, now: int, logs: list[tuple[str, int]]) -> bytes:
    rows = [texts(identity) + _POSITION.pack(position) for identity, position in logs]
    head = _HEAD.pack(_UNFINISHED, batch, now)
    return head + texts(key.vhost, key.user, key.name) + b"".join(rows)


def texts(*given: str) -> bytes:
    """Return the texts, each after its length as u16."""
    encoded = [text.encode() for text in given]
    return b"".join([_LENGTH.pack(len(text)) + text for text in encoded])


def text_at(data: bytes, at: int) -> tuple[bytes, int]:
    """Return a text and the offset behind it; behind all bytes if it is cut short."""
    if at + _LENGTH.size > len(data):
        return b"", len(data) + 1
    start = at + _LENGTH.size
    end = start + _LENGTH.unpack_from(data, at)[0]
    return data[start:end], end


def _rows_of(data: bytes) -> list[tuple[str, int]]:
    """Return the logs with rows of the batch, and their first positions; None for other bytes."""
    if len(data) < _HEAD.size or data[0] != _UNFINISHED:
        return []
    at = _HEAD.size
    for _ in range(3):
        _, at = text_at(data, at)
    found = []
    while at < len(data):
        identity, at = text_at(data, at)
        if at + _POSITION.size > len(data):
            break
        found.append((identity.decode("ascii", "replace"), _POSITION.unpack_from(data, at)[0]))
        at += _POSITION.size
    return found


def _decode(data: bytes) -> Entry | None:
    """Return the entry of a record; None for invalid bytes."""
    if len(data) < _HEAD.size:
        return None
    kind, number, used = _HEAD.unpack_from(data)
    at, names = _HEAD.size, []
    for _ in range(3):
        text, at = text_at(data, at)
        names.append(text)
    known = kind in (STAGED, NUMBERED)
    if not known or at > len(data) or (len(data) - at) % _DIGEST_BYTES:
        return None
    try:
        vhost, user, name = (each.decode() for each in names)
    except UnicodeDecodeError:
        return None
    entry = Entry(Key(kind, vhost, user, name))
    entry.next = number
    entry.used = used
    entry.runs = [
        data[start : start + _DIGEST_BYTES] for start in range(at, len(data), _DIGEST_BYTES)
    ]
    return entry

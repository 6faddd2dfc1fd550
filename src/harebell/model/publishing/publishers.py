"""Named publishers: the numbers that they have published, so that repeats are dropped.

For each publisher the broker keeps the next number and the run that may publish. The index is a log
of the broker. An entry is part of the same commit as its messages, and a crash keeps that commit
whole or not at all, so entries and messages always agree.

    an entry in the log   all numbers little-endian

    kind  1 staged batches, 2 publishing ids        u8
    next  the smallest number not published       u64
    used  milliseconds since 1970                   u64
    vhost, user, name                               each after its length as u16
    runs  kind 1: digests of the runs, the current one last, 16 bytes each
    eras  kind 2: of the numbers before `next`, see `harebell.base.eras`     ASCII

    while rows of an uncommitted batch are in logs

    kind  3                                         u8
    batch                                           u64
    used, vhost, user, name                         as above
    logs  each: identity after its length as u16, position of its first row as u64

A start removes the rows of such a batch from these logs: it was never confirmed.

A later record of an entry replaces the earlier one. A publisher belongs to its user: no other user
can advance its number and so cause messages to be dropped. Another user with its name is refused:
the repeats of that user could not be recognised. An administrator can hand the publisher over.
Versions before this rule had one publisher for each user of a name; these stay.

No other user can evict a publisher: a user may have a part of the publishers of a vhost, and makes
room for a new one with own ones that were not used for `PUBLISHER_KEPT_MS`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from struct import Struct
from typing import NamedTuple

from harebell.base.clock import Clock
from harebell.base.eras import continued, eras_before, is_eras, shared_until
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.ports import PUBLISHER_LOG, Log, Store
from harebell.base.share import Shares
from harebell.model.limits import PUBLISHER_KEPT_MS, PUBLISHERS_COUNT, STAGE_RUNS_COUNT
from harebell.model.resource import precondition

STAGED = 1
"""Kind of publishers that use the class stage."""
NUMBERED = 2
"""Kind of publishers that number their messages."""

_UNFINISHED = 3
UNFINISHED_BATCH = bytes((_UNFINISHED,))
"""The first byte of the record of a batch that is not committed."""

_HEAD = Struct("<BQQ")
_POSITION = Struct("<Q")
_LENGTH = Struct("<H")
_DIGEST_BYTES = 16
_RECORD = Properties(b"", delivery_mode=PERSISTENT)
_REMEDY = "remove some that are not used any more (publisher.forget), or use other vhosts"
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
        eras: of the numbers of a publisher that numbers its messages.
        holders: the number of channels that use it now.
        position: the position of its record in the log; -1 without one.
        used: when it was used last, in milliseconds since 1970.
        changed: whether its record is outdated.
        refused: numbers below `next` that were refused.
    """

    __slots__ = (
        *("changed", "eras", "holders", "key", "next", "position", "refused", "runs", "used"),
    )

    def __init__(self, key: Key) -> None:
        self.key = key
        self.next = 0
        self.runs: list[bytes] = []
        self.eras = ""
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
        self._shares: dict[str, Shares] = {}
        # By vhost and user, in the order of their last use.
        self._owned: dict[tuple[str, str], dict[Key, Entry]] = {}
        # How many users have a publisher, by kind, vhost and name: more than one only from before.
        self._named: Counter[tuple[int, str, str]] = Counter()
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
        """Return a publisher, known or new.

        Raises:
            Refusal: ACCESS_REFUSED, another user has one of that name; or PRECONDITION_FAILED, the
                user has too many that were used not long ago.
        """
        entry = self._entries.get(key)
        if entry is None:
            if self._named[_name(key)]:
                raise _of_another(key)
            self._make_room(key)
            entry = Entry(key)
            self._begin_era(entry)
            self._add(entry)
        owned = self._owned[key.vhost, key.user]
        # Moved to the end: the dictionary is in the order of the last use, for `_make_room`.
        owned[key] = owned.pop(key)
        entry.used = self._clock.ms
        return entry

    def check_numbers(self, key: Key, number: int, eras: str) -> None:
        """Refuse a publisher whose numbers the broker has lost.

        Args:
            key: of the publisher, known or not.
            number: the next one after all that it knows as published.
            eras: of these; "" if it does not know them.

        Raises:
            Refusal: PRECONDITION_FAILED; the text says which numbers are lost.
        """
        if not is_eras(eras):
            raise precondition(f"publisher '{key.name}' was given eras that are none")
        entry = self._entries.get(key)
        following = 0 if entry is None else entry.next
        shared = min(following, shared_until(eras, "" if entry is None else entry.eras))
        if eras and shared < number:
            raise precondition(
                f"data loss: the messages {shared} to {number - 1} that publisher '{key.name}' has "
                "published are lost: the broker's data is of an older date, or the publisher was "
                f"forgotten. Declared without eras it goes on with {following}"
            )

    def release(self, entry: Entry) -> None:
        """Note that a channel does not use a publisher any more; forget one without a number."""
        entry.holders -= 1
        unused = not (entry.holders or entry.changed or entry.next or entry.runs)
        if unused and entry.position < 0 and self._entries.get(entry.key) is entry:
            self._drop(entry)

    def enter(self, entry: Entry, run: str) -> None:
        """Let a run publish for a publisher from now on.

        Raises:
            Refusal: FENCED, the run was replaced by another one.
        """
        digest = _digest(run)
        if entry.runs and entry.runs[-1] == digest:
            return
        # An earlier run: its process lives on, and must not publish beside the current one.
        if digest in entry.runs:
            raise fenced(entry.key.name, run)
        entry.runs.append(digest)
        # A run that was replaced by that many others is forgotten.
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
        # One at a time: `Commit.staged` names the logs of a single batch.
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

    def of(self, vhost: str) -> list[Entry]:
        """Return the publishers of a vhost by user."""
        owned = sorted(user for where, user in self._owned if where == vhost)
        return [entry for user in owned for entry in self._owned[vhost, user].values()]

    def query(self, vhost: str, name: str, user: str | None) -> list[Entry]:
        """Return the publishers of a query: of this name, and with a "/" and more after it.

        Args:
            vhost: the name of the vhost.
            name: of the query's publisher; those that number rows have the partition after it.
            user: only those of this user; None for all.
        """
        return [
            each
            for each in self.of(vhost)
            if user in (None, each.key.user)
            and (each.key.name == name or each.key.name.startswith(f"{name}/"))
        ]

    def hand_over(self, entries: list[Entry], user: str) -> None:
        """Give publishers to another user, who goes on with their numbers; all of them or none.

        Raises:
            Refusal: RESOURCE_LOCKED, one is in use; or PRECONDITION_FAILED, the user has one of
                such a name, or has a full share.
        """
        # All checks come before the first change: later ones cannot fail.
        for entry in entries:
            check_idle(entry)
            if entry.key._replace(user=user) in self._entries:
                raise Refusal(
                    ErrorKind.PRECONDITION_FAILED,
                    f"user '{user}' has a publisher '{entry.key.name}' too: "
                    "`harebell publishers forget` removes one of the two",
                )
        for vhost, count in Counter(entry.key.vhost for entry in entries).items():
            shares = self._shares[vhost]
            shares.check(user, count, cannot=f"{count} publishers cannot be handed over")
        for entry in entries:
            self._remove(entry)
            entry.key = entry.key._replace(user=user)
            entry.used = self._clock.ms
            self._add(entry)
            self.change(entry)

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
        for entry in self._entries.values():
            self._begin_era(entry)

    # --- inside ---------------------------------------------------------------------------------

    def _begin_era(self, entry: Entry) -> None:
        """Begin an era of the numbers; it is stored with its first number."""
        if entry.key.kind == NUMBERED:
            entry.eras = continued(entry.eras, self._store.new_era(), entry.next, 0)

    def _take_up(self, log: Log, entry: Entry, position: int) -> None:
        before = self._entries.get(entry.key)
        # A crash between the append of a record and the settlement of the one before leaves both.
        if before is not None:
            self._remove(before)
            log.settle(before.position)
        entry.position = position
        self._add(entry)

    def _add(self, entry: Entry) -> None:
        key = entry.key
        self._entries[key] = entry
        self._owned.setdefault((key.vhost, key.user), {})[key] = entry
        self._named[_name(key)] += 1
        if key.vhost not in self._shares:
            self._shares[key.vhost] = Shares(
                f"publishers in vhost '{key.vhost}'", PUBLISHERS_COUNT, _REMEDY
            )
        self._shares[key.vhost].add(key.user)

    def _remove(self, entry: Entry) -> None:
        key = entry.key
        del self._entries[key]
        owned = self._owned[key.vhost, key.user]
        del owned[key]
        if not owned:
            del self._owned[key.vhost, key.user]
        self._named[_name(key)] -= 1
        if not self._named[_name(key)]:
            del self._named[_name(key)]
        shares = self._shares[key.vhost]
        shares.remove(key.user)
        if not shares.used:
            del self._shares[key.vhost]

    def _make_room(self, key: Key) -> None:
        """Forget the user's publisher that was not used for longest, if the share is full.

        Raises:
            Refusal: PRECONDITION_FAILED, all of them were used not long ago.
        """
        shares = self._shares.get(key.vhost)
        if shares is None or not shares.objection(key.user):
            return
        oldest = self._clock.ms - PUBLISHER_KEPT_MS
        for entry in self._owned.get((key.vhost, key.user), {}).values():
            # In the order of their last use: all that follow were used later.
            if entry.used > oldest:
                break
            if not entry.holders:
                self._drop(entry)
                return
        shares.check(key.user, cannot=f"publisher '{key.name}' cannot be made")

    def _drop(self, entry: Entry) -> None:
        self._remove(entry)
        if entry.changed:
            self._changed.remove(entry)
        if entry.position >= 0:
            self._log().settle(entry.position)
            self._log().sync_soon()

    def _write_changed(self) -> None:
        """Store the changed entries: the gathering commit is about to be closed."""
        # A row has reached another log since the record of the batch was written.
        if len(self._commit.staged) != self._logs:
            self._write_batch()
        if not self._changed:
            return
        for entry in self._changed:
            self._write(entry)
        # Only now: if the log refuses a record, all of them are written again later.
        for entry in self._changed:
            entry.changed = False
        self._changed.clear()
        self._compact()

    def _write_batch(self) -> None:
        """Store which logs have rows of the batch, or that it is finished."""
        log, before, now = self._log(), self._unfinished, -1
        if self._batch is not None:
            body = _encode_batch(*self._batch, self._clock.ms, self._commit.staged)
            now = log.append(Message("", "", _RECORD, body))
        self._unfinished = now
        self._logs = len(self._commit.staged)
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
        # The first entries have the oldest records. Four for each commit keep up with it: a commit
        # mostly writes one, so the log stays a few times as long as there are entries.
        behind = log.end() - 4 * len(self._entries) - _SLACK
        for entry in list(self._entries.values())[:4]:
            if 0 <= entry.position < behind:
                self._write(entry)

    def _log(self) -> Log:
        if self._kept is None:
            self._kept = self._store.open_log(PUBLISHER_LOG, durable=True, keep_all=True)
        return self._kept


def check_idle(entry: Entry) -> None:
    """Refuse to take away a publisher that is in use.

    Raises:
        Refusal: RESOURCE_LOCKED, it is.
    """
    if entry.holders:
        raise Refusal(
            ErrorKind.RESOURCE_LOCKED,
            f"publisher '{entry.key.name}' is in use on {entry.holders} channels",
        )


def _name(key: Key) -> tuple[int, str, str]:
    return key.kind, key.vhost, key.name


def _of_another(key: Key) -> Refusal:
    """Return the refusal of a publisher that another user has made; 255 bytes are sent of it."""
    return Refusal(
        ErrorKind.ACCESS_REFUSED,
        f"publisher '{key.name}' is another user's, so '{key.user}' would publish again what it "
        f"has published: an administrator can do `harebell publishers hand-over {key.name} --to "
        f"{key.user}`",
    )


def fenced(name: str, run: str) -> Refusal:
    """Return the refusal for a run that was replaced."""
    return Refusal(
        ErrorKind.FENCED,
        f"run '{run}' of publisher '{name}' is fenced: another run has taken its place",
    )


def _digest(run: str) -> bytes:
    return hashlib.blake2b(run.encode(), digest_size=_DIGEST_BYTES).digest()


def _encode(entry: Entry) -> bytes:
    key = entry.key
    head = _HEAD.pack(key.kind, entry.next, entry.used)
    eras = eras_before(entry.eras, entry.next).encode()
    return head + texts(key.vhost, key.user, key.name) + b"".join(entry.runs) + eras


def _encode_batch(key: Key, batch: int, now: int, logs: list[tuple[str, int]]) -> bytes:
    rows = [texts(identity) + _POSITION.pack(position) for identity, position in logs]
    head = _HEAD.pack(_UNFINISHED, batch, now)
    return head + texts(key.vhost, key.user, key.name) + b"".join(rows)


def texts(*given: str) -> bytes:
    """Return the texts, each after its length as u16."""
    encoded = [text.encode() for text in given]
    return b"".join([_LENGTH.pack(len(text)) + text for text in encoded])


def text_at(data: bytes, offset: int) -> tuple[bytes, int]:
    """Return a text and the offset behind it; behind all bytes if it is cut short."""
    if offset + _LENGTH.size > len(data):
        return b"", len(data) + 1
    start = offset + _LENGTH.size
    end = start + _LENGTH.unpack_from(data, offset)[0]
    return data[start:end], end


def _rows_of(data: bytes) -> list[tuple[str, int]]:
    """Return the logs with rows of the batch, and their first positions; empty for other bytes."""
    if len(data) < _HEAD.size or data[0] != _UNFINISHED:
        return []
    offset = _HEAD.size
    for _ in range(3):
        _, offset = text_at(data, offset)
    rows = []
    while offset < len(data):
        identity, offset = text_at(data, offset)
        if offset + _POSITION.size > len(data):
            break
        rows.append((identity.decode("ascii", "replace"), _POSITION.unpack_from(data, offset)[0]))
        offset += _POSITION.size
    return rows


def vhost_of_record(data: bytes) -> str | None:
    """Return the vhost of the publisher of a record; None for what is no such record."""
    entry = _decode(data)
    return None if entry is None else entry.key.vhost


def _decode(data: bytes) -> Entry | None:
    """Return the entry of a record; None for invalid bytes."""
    if len(data) < _HEAD.size:
        return None
    kind, number, used = _HEAD.unpack_from(data)
    offset, names = _HEAD.size, []
    for _ in range(3):
        text, offset = text_at(data, offset)
        names.append(text)
    if kind not in (STAGED, NUMBERED) or offset > len(data):
        return None
    try:
        vhost, user, name = (each.decode() for each in names)
        eras = data[offset:].decode() if kind == NUMBERED else ""
    except UnicodeDecodeError:
        return None
    if not is_eras(eras) or (kind == STAGED and (len(data) - offset) % _DIGEST_BYTES):
        return None
    entry = Entry(Key(kind, vhost, user, name))
    entry.next = number
    entry.used = used
    entry.eras = eras
    if kind == STAGED:
        entry.runs = [
            data[start : start + _DIGEST_BYTES] for start in range(offset, len(data), _DIGEST_BYTES)
        ]
    return entry

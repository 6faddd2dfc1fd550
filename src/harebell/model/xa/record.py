"""The stored form of a prepared branch: one record in the log of the branches.

    the body of the record's message; all numbers are little-endian

    u8  version, 1          u8  state: 0 prepared, 1 committed heuristically, 2 rolled back so
    u64 when it was prepared, ms since 1970      u32 timeout in seconds
    u16 length, and the xid (see `xid`)
    text vhost | text user                       text: u16 length, UTF-8
    u32 queues       each: text name | text identity of its log
    u32 publishes    each: u64 time to live from the commit on in ms, 2^64-1 for none
                           u16 queues, each: u32 number in the list above
                           u32 length, and a record of the message (store/FORMAT.md)
    u32 settlements  each: u32 queue | u64 position | u8 0 accept, 1 reject, 2 requeue,
                           3 requeue without a failed delivery

It is one record, as a crash keeps a record whole or not at all: a branch is prepared when its
record is on disk. A heuristically decided branch has no queues, publishes and settlements.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as struct_error

import msgspec

from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.message import Message
from harebell.base.slices import Slices, at_once, in_pieces
from harebell.kernels.records import RecordBuffer, parse
from harebell.model.queue.contract import Queue
from harebell.model.transaction import KINDS, due_at_commit, ttl_until_commit
from harebell.model.xa.states import State
from harebell.model.xa.xid import Xid, XidError, xid_of_bytes

_VERSION = 1
_STATES = (State.PREPARED, State.DECIDED_COMMIT, State.DECIDED_ROLLBACK)
_HEAD = Struct("<BBQI")
_SHORT = Struct("<H")
_LONG = Struct("<I")
_TTL = Struct("<Q")
_SETTLED = Struct("<IQB")
_NEVER = 2**64 - 1
_MAX = 2**63 - 1


class RecordError(ValueError):
    """Bytes that are no valid record of a branch; the text says why."""


class RecordedQueue(msgspec.Struct, frozen=True):
    """A queue by name and identity: found again only if it is still the same queue."""

    name: str
    identity: str


class Publish(msgspec.Struct):
    """A message, and the numbers of its queues."""

    message: Message
    queues: tuple[int, ...]


class Settlement(msgspec.Struct):
    """The number of a queue, a position, and how the delivery was settled."""

    queue: int
    position: int
    kind: int


class BranchRecord(msgspec.Struct):
    """The contents of a record."""

    xid: Xid
    vhost: str
    user: str
    state: State = State.PREPARED
    moment: int = 0
    timeout: int = 0
    queues: list[RecordedQueue] = msgspec.field(default_factory=list)
    publishes: list[Publish] = msgspec.field(default_factory=list)
    settlements: list[Settlement] = msgspec.field(default_factory=list)
    _numbers: dict[tuple[str, str], int] = msgspec.field(default_factory=dict)

    def number(self, queue: Queue) -> int:
        """Return the number of a queue in the list; add it if it is new."""
        key = queue.name, queue.identity
        index = self._numbers.get(key)
        if index is None:
            index = self._numbers[key] = len(self.queues)
            self.queues.append(RecordedQueue(queue.name, queue.identity))
        return index

    def add(self, message: Message, queues: Iterable[Queue]) -> None:
        """Add a publish to these queues."""
        self.publishes.append(Publish(message, tuple(self.number(queue) for queue in queues)))

    def encode(self) -> bytes:
        """Return the bytes of the record."""
        return at_once(self.encode_in_slices())

    def encode_in_slices(self) -> Slices[bytes]:
        """Return the bytes of the record, in slices."""
        head = _HEAD.pack(_VERSION, _STATES.index(self.state), self.moment, self.timeout)
        xid = self.xid.encode()
        parts = [head, _SHORT.pack(len(xid)), xid, _text(self.vhost), _text(self.user)]
        parts.append(_LONG.pack(len(self.queues)))
        for place in self.queues:
            parts += [_text(place.name), _text(place.identity)]
        parts.append(_LONG.pack(len(self.publishes)))
        for publishes in in_pieces(self.publishes):
            yield
            parts.append(b"".join([part for each in publishes for part in _publish(each)]))
        parts.append(_LONG.pack(len(self.settlements)))
        for some in in_pieces(self.settlements):
            yield
            packed = [_SETTLED.pack(each.queue, each.position, each.kind) for each in some]
            parts.append(b"".join(packed))
        return b"".join(parts)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return _SHORT.pack(len(data)) + data


def _publish(publish: Publish) -> Iterable[bytes]:
    message = publish.message
    ttl = ttl_until_commit(message.due) if message.due < 0 else _NEVER
    buffer = RecordBuffer(0, 0)
    buffer.message(0, 0, message, True)
    record = buffer.take()
    return [
        _TTL.pack(ttl),
        _SHORT.pack(len(publish.queues)),
        *(_LONG.pack(number) for number in publish.queues),
        _LONG.pack(len(record)),
        record,
    ]


class _Reader:
    """Decodes a record from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def numbers(self, kind: Struct) -> tuple[int, ...]:
        """Return the next numbers."""
        values = kind.unpack_from(self._data, self._offset)
        self._offset += kind.size
        return values

    def number(self, kind: Struct) -> int:
        """Return the next number."""
        return self.numbers(kind)[0]

    def data(self, size: int) -> bytes:
        """Return the next bytes."""
        if size > len(self._data) - self._offset:
            raise RecordError(f"{size} octets are said to follow octet {self._offset}")
        self._offset += size
        return self._data[self._offset - size : self._offset]

    def text(self) -> str:
        """Return the next text."""
        return self.data(self.number(_SHORT)).decode("utf-8", "surrogateescape")

    def count(self) -> int:
        """Return the number of elements that follow, each at least one byte long."""
        count = self.number(_LONG)
        # Before a loop: damaged bytes may claim four billion elements.
        if count > len(self._data) - self._offset:
            raise RecordError(f"{count} entries are said to follow octet {self._offset}")
        return count

    def end(self) -> None:
        """Raise RecordError if bytes are left."""
        if self._offset != len(self._data):
            raise RecordError(f"{len(self._data) - self._offset} octets are left over")


def decode(data: bytes) -> BranchRecord:
    """Return the record of bytes.

    Raises:
        RecordError: they are invalid.
    """
    return at_once(decode_in_slices(data))


def decode_in_slices(data: bytes) -> Slices[BranchRecord]:
    """As `decode`, in slices."""
    try:
        return (yield from _decode(_Reader(data)))
    except (struct_error, XidError, UnicodeDecodeError) as error:
        raise RecordError(str(error)) from None


def _decode(reader: _Reader) -> Slices[BranchRecord]:
    version, state, moment, timeout = reader.numbers(_HEAD)
    if version != _VERSION:
        raise RecordError(f"its format is {version}, and this version reads {_VERSION}")
    if state >= len(_STATES):
        raise RecordError(f"there is no state {state}")
    xid = xid_of_bytes(reader.data(reader.number(_SHORT)))
    record = BranchRecord(xid, reader.text(), reader.text(), _STATES[state], moment, timeout)
    for _ in range(reader.count()):
        record.queues.append(RecordedQueue(reader.text(), reader.text()))
    for number in range(reader.count()):
        record.publishes.append(_read_publish(reader, len(record.queues)))
        if number % TRANSACTION_SLICE == 0:
            yield
    for number in range(reader.count()):
        if number % TRANSACTION_SLICE == 0:
            yield
        queue, position, kind = reader.numbers(_SETTLED)
        if queue >= len(record.queues) or kind not in KINDS or position >= _MAX:
            raise RecordError(
                f"a settlement of kind {kind} at position {position} of {queue} makes no sense"
            )
        record.settlements.append(Settlement(queue, position, kind))
    reader.end()
    return record


def _read_publish(reader: _Reader, queues: int) -> Publish:
    ttl = reader.number(_TTL)
    numbers = tuple(reader.number(_LONG) for _ in range(reader.number(_SHORT)))
    message = parse(reader.data(reader.number(_LONG)), 0, 0)
    if message is None:
        raise RecordError("a message in it is damaged")
    if any(number >= queues for number in numbers):
        raise RecordError(f"a message goes to queue {max(numbers)} of {queues}")
    message.timestamp = 0
    if ttl != _NEVER and ttl >= _MAX:
        raise RecordError(f"a message is to last {ttl} ms")
    # A time to live begins at the commit, however long the branch was prepared.
    if ttl != _NEVER:
        message.due = due_at_commit(ttl)
    return Publish(message, numbers)

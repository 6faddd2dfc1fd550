"""The log's records: both kernels write the same octets, and nothing damaged is read."""

from __future__ import annotations

import tracemalloc
from types import ModuleType

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base import impl
from harebell.base.message import Message, Properties
from harebell.kernels.settled_bitmap import SettledBitmap
from harebell.wire.arrow.decode import decode_batch
from tests.unit.kernels.twins import twin, used

RECORDS = used("records")
KERNELS = [RECORDS, twin("records")]
ROWS_KERNELS = [used("rows"), twin("rows")]
SEED = 0xC0FFEE
TIME = 1_700_000_000_123

names = st.text(max_size=60)


def built(
    exchange: str, key: str, properties: Properties, body: bytes, due: int, deliveries: int = 0
) -> Message:
    message = Message(exchange, key, properties, body)
    message.due, message.deliveries = due, deliveries
    return message


messages = st.builds(
    lambda exchange, key, raw, mode, priority, headers, body, due, deliveries: built(
        exchange, key, Properties(raw, mode, priority, headers), body, due, deliveries
    ),
    names,
    names,
    st.binary(max_size=80),
    st.integers(0, 255),
    st.integers(-1, 255),
    st.booleans(),
    st.binary(max_size=600),
    st.just(0) | st.integers(1, 2**62),
    st.just(0) | st.integers(1, 300),
)


def fields(message: Message | None) -> tuple[object, ...]:
    """Everything a message has."""
    assert message is not None
    return (
        message.exchange,
        message.routing_key,
        message.raw,
        message.delivery_mode,
        message.priority,
        message.has_headers,
        message.family,
        message.body,
        message.due,
        min(message.deliveries, 255),
    )


def written(kernel: ModuleType, *contents: Message, start: int = 64) -> bytes:
    """The octets of messages with positions from 10 on."""
    buffer = kernel.RecordBuffer(start, SEED)
    for number, message in enumerate(contents):
        buffer.message(10 + number, TIME + number, message, True)
    return bytes(buffer.take())


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_checksum_is_crc32c(kernel: ModuleType) -> None:
    # The check value of the algorithm's catalogue entry, and RFC 3720 B.4.
    assert kernel.crc32c(b"123456789") == 0xE3069283
    assert kernel.crc32c(bytes(32)) == 0x8A9136AA
    assert kernel.crc32c(b"6789", kernel.crc32c(b"12345")) == 0xE3069283


@given(st.binary(max_size=100), st.integers(0, 2**32 - 1))
def test_the_checksum_is_the_same_on_every_machine(data: bytes, crc: int) -> None:
    expected = KERNELS[1].crc32c(data, crc)
    assert RECORDS.crc32c(data, crc) == expected
    portable = getattr(RECORDS, "crc32c_portable", KERNELS[1].crc32c)
    assert portable(data, crc) == expected


@pytest.mark.parametrize("size", [191, 192, 193, 400, 6_143, 6_144, 6_145, 6_340, 20_000])
def test_the_checksum_of_many_octets_is_that_of_their_parts(size: int) -> None:
    data = bytes(number * number * 31 >> 7 & 0xFF for number in range(size))
    expected = KERNELS[1].crc32c(data)
    assert RECORDS.crc32c(data) == expected
    for cut in (1, 64, 192, size - 1):
        assert RECORDS.crc32c(data[cut:], RECORDS.crc32c(data[:cut])) == expected


@given(st.lists(messages, max_size=5), st.booleans())
def test_both_kernels_write_the_same_octets(contents: list[Message], keep: bool) -> None:
    results = []
    for kernel in KERNELS:
        buffer = kernel.RecordBuffer(64, SEED)
        buffer.raw(bytes(16))
        offsets = [
            buffer.message(position, TIME, message, keep)
            for position, message in enumerate(contents)
        ]
        offsets.append(buffer.note(kernel.SETTLED, len(contents), TIME, b"abc"))
        size = buffer.size
        results.append((offsets, size, bytes(buffer.take()), buffer.start, buffer.size))
    assert results[0] == results[1]
    offsets, size, data, start, left = results[0]
    assert (start, left) == (64 + size, 0)
    assert all(offset % 8 == 0 for offset in offsets)
    assert len(data) == size


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_buffer_that_was_written_from_its_memory_goes_on_there(kernel: ModuleType) -> None:
    buffer = kernel.RecordBuffer(64, SEED)
    buffer.raw(b"12345678")
    assert bytes(buffer.view()) == b"12345678"
    buffer.empty_at(4_096)
    assert (buffer.start, buffer.size, bytes(buffer.take())) == (4_096, 0, b"")
    content = Message("", "", Properties(b"\0\0"), b"next")
    offset = buffer.message(10, TIME, content, True)
    assert offset == 4_096
    assert buffer.read(offset).body == b"next"
    assert kernel.parse(buffer.take(), 0, SEED).body == b"next"
    assert buffer.start == 4_096 + kernel.message_size(content)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("count", [1, 20, 1_500, 4_000])
def test_a_buffer_of_any_size_gives_what_it_has_got(kernel: ModuleType, count: int) -> None:
    buffer = kernel.RecordBuffer(0, SEED)
    for _ in range(3):
        pieces = [number.to_bytes(8) * 128 for number in range(count)]
        for piece in pieces:
            buffer.raw(piece)
        taken = buffer.take()
        assert (type(taken), len(taken)) == (bytes, count * 1_024)
        assert taken == b"".join(pieces)


@settings(max_examples=60)
@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=8),
    names,
    st.booleans(),
    st.sampled_from([0, 1, 1 | RECORDS.STAGED]),
    st.integers(0, 900),
)
def test_rows_become_the_records_that_their_messages_become(
    bodies: list[bytes], key: str, headers: bool, keep: int, limit: int
) -> None:
    mapped = [[("a", "b")] if headers else None] * len(bodies)
    batch = pa.record_batch(
        [pa.array(bodies, pa.binary()), pa.array(mapped, pa.map_(pa.string(), pa.string()))],
        names=["value", "headers"],
    )
    data = batch.serialize().to_pybytes()
    columns = ("value", "headers")
    results = []
    for kernel, rows_kernel in zip(KERNELS, ROWS_KERNELS, strict=True):
        rows = rows_kernel.Rows(columns, (), "x", key, 2)
        rows.load(data, *decode_batch(data, columns, ()))
        at_once, one_by_one = (kernel.RecordBuffer(64, SEED) for _ in range(2))
        positions = SettledBitmap(5)
        count = at_once.rows(5, TIME, rows, 0, len(bodies), keep, limit, positions)
        offsets = [
            one_by_one.message(5 + row, TIME, rows.message(row), keep) for row in range(count)
        ]
        assert [positions.offset(5 + row) for row in range(count)] == offsets
        assert count == len(bodies) or at_once.size >= limit
        data_at_once = bytes(at_once.take())
        assert data_at_once == bytes(one_by_one.take())
        results.append((count, data_at_once))
    assert results[0] == results[1]


@given(messages)
def test_written_values_are_read(message: Message) -> None:
    for kernel in KERNELS:
        buffer = kernel.RecordBuffer(64, SEED)
        offset = buffer.message(7, TIME, message, True)
        assert fields(buffer.read(offset)) == fields(message)
        data = bytes(buffer.take())
        found = kernel.parse(data, offset - 64, SEED)
        assert fields(found) == fields(message)
        assert (found.timestamp, found.offset) == (TIME, -1)
        assert kernel.head(data, 0) == (7, TIME, kernel.MESSAGE, kernel.record_size(data, 0))


@settings(max_examples=60)
@given(messages, st.data())
def test_no_flipped_bit_goes_unnoticed(message: Message, data: st.DataObject) -> None:
    octets = written(RECORDS, message)
    size = RECORDS.record_size(octets, 0)
    bit = data.draw(st.integers(0, size * 8 - 1))
    damaged = bytearray(octets)
    damaged[bit >> 3] ^= 1 << (bit & 7)
    for kernel in KERNELS:
        assert kernel.parse(bytes(damaged), 0, SEED) is None
        assert not kernel.good(bytes(damaged), 0, SEED)


@given(messages, st.integers(0, 40))
def test_a_record_that_does_not_fit_is_none(message: Message, missing: int) -> None:
    octets = written(RECORDS, message)
    size = RECORDS.record_size(octets, 0)
    for kernel in KERNELS:
        assert kernel.parse(octets[: max(size - 1 - missing, 0)], 0) is None
        assert kernel.parse(octets, size + 4096) is None
        assert kernel.parse(octets, -8) is None


def test_a_record_of_another_log_is_not_good() -> None:
    octets = written(RECORDS, Message("e", "k", Properties(b"\0\0"), b"body"))
    for kernel in KERNELS:
        assert kernel.good(octets, 0, SEED)
        assert not kernel.good(octets, 0, SEED + 1)


@given(st.binary(max_size=300))
def test_any_octets_are_read_without_an_error(data: bytes) -> None:
    for at in range(0, len(data), 8):
        found = [kernel.parse(data, at) for kernel in KERNELS]
        assert (found[0] is None) == (found[1] is None)
        if found[0] is not None:
            assert fields(found[0]) == fields(found[1])
    assert len({kernel.find_good(data, 0, SEED, 0, 2**60) for kernel in KERNELS}) == 1


@given(st.lists(messages, min_size=1, max_size=6), st.data())
def test_scanning_takes_in_what_is_good_up_to_the_first_damage(
    contents: list[Message], data: st.DataObject
) -> None:
    octets = bytearray(written(RECORDS, *contents))
    starts = [0]
    while starts[-1] < len(octets):
        size = RECORDS.record_size(bytes(octets), starts[-1])
        starts.append(starts[-1] + size + -size % 8)
    broken = data.draw(st.integers(0, len(contents)))
    if broken < len(contents):
        octets[starts[broken] + 20] ^= 1
    for kernel in KERNELS:
        positions = SettledBitmap(10)
        at, newest = kernel.scan(bytes(octets), 0, 64, SEED, positions)
        assert at == starts[broken]
        assert positions.count == positions.live == broken
        assert newest == (TIME + broken - 1 if broken else 0)
        assert [positions.offset(10 + n) - 64 for n in range(broken)] == starts[:broken]
        if broken < len(contents) - 1:
            found = kernel.find_good(bytes(octets), at + 8, SEED, 10, 99)
            assert found == starts[broken + 1]
            assert kernel.find_good(bytes(octets), at + 8, SEED, 90, 99) == -1


def test_scanning_settles_what_is_not_to_be_kept() -> None:
    for kernel in KERNELS:
        buffer = kernel.RecordBuffer(0, SEED)
        for position in range(4):
            message = Message("", "q", Properties(b"\0\0"), b"")
            buffer.message(position, TIME, message, position % 2 == 0)
        positions = SettledBitmap(0)
        kernel.scan(bytes(buffer.take()), 0, 0, SEED, positions)
        assert [positions.settled(n) for n in range(4)] == [False, True, False, True]


def test_the_payload_of_a_note_is_what_follows_its_head() -> None:
    for kernel in KERNELS:
        buffer = kernel.RecordBuffer(0, SEED)
        buffer.note(kernel.COUNT, 3, TIME, b"twelve octet")
        data = bytes(buffer.take())
        assert kernel.payload(data, 0) == b"twelve octet"
        assert kernel.head(data, 0)[:3] == (3, TIME, kernel.COUNT)
        assert kernel.parse(data, 0, SEED) is None


@given(messages)
def test_a_record_takes_what_was_said_before_it_was_made(message: Message) -> None:
    for kernel in KERNELS:
        buffer = kernel.RecordBuffer(0, SEED)
        buffer.message(1, TIME, message, True)
        assert buffer.size == kernel.message_size(message)


def test_a_name_that_is_too_long_for_a_record_is_refused() -> None:
    longest = Message("\xe9" * 127, "k" * 255, Properties(b""), b"")
    for kernel in KERNELS:
        assert kernel.message_size(longest) == 36 + 254 + 255 + 7
        for exchange, key in (("\xe9" * 128, ""), ("", "k" * 256)):
            with pytest.raises(ValueError, match="255"):
                kernel.message_size(Message(exchange, key, Properties(b""), b""))


if impl.chosen() == impl.NATIVE:
    # Only the compiled buffer makes room ahead.

    def test_buffers_of_different_logs_do_not_grow_at_the_same_message() -> None:
        def room(seed: int, count: int) -> int:
            """What a buffer with so many messages takes in memory."""
            tracemalloc.start()
            try:
                buffer = RECORDS.RecordBuffer(0, seed)
                for at in range(count):
                    buffer.message(at, TIME, same, 1)
                return tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()

        same = built("e", "k", Properties(b"\0\0"), b"x" * 100, 0)
        seeds = [0x9E3779B9 * number % 2**32 for number in range(64)]
        grown = [
            sum(room(seed, count + 1) > room(seed, count) for seed in seeds)
            for count in range(30, 120)
        ]
        assert sum(grown) >= len(seeds), "each has grown meanwhile"
        assert max(grown) < len(seeds) // 4

"""SettlementBuffer: settled runs grow together, and marks run ahead of what is handed out."""

from __future__ import annotations

from struct import iter_unpack, unpack

from harebell.kernels.records import CLOSED, COUNT, SEEN, SETTLED, RecordBuffer, head, payload
from harebell.store.limits import SEEN_AHEAD
from harebell.store.log.settlement_buffer import SettlementBuffer


def written(notes: SettlementBuffer) -> list[tuple[int, bytes]]:
    """Kind and payload of the records that the notes leave."""
    buffer = RecordBuffer(0, 0)
    notes.write(buffer, 50, 0)
    data, at, found = bytes(buffer.take()), 0, []
    while at < len(data):
        position, _, kind, size = head(data, at)
        assert position == 50
        found.append((kind, payload(data, at)))
        at += size + -size % 8
    return found


def test_positions_settled_in_order_are_one_range() -> None:
    notes = SettlementBuffer()
    for position in range(10, 20):
        notes.settled(position, position + 1)
    notes.settled(5, 7)
    notes.settled(7, 8)
    ((kind, content),) = written(notes)
    assert kind == SETTLED
    assert list(iter_unpack("<QI", content)) == [(10, 10), (5, 3)]
    assert written(notes) == []


def test_written_settlements_are_reported_as_ranges() -> None:
    notes = SettlementBuffer()
    notes.settled(0, 3)
    notes.counted(9, 2)
    assert notes.write(RecordBuffer(0, 0), 50, 0) == [(0, 3), (9, 10)]


def test_the_last_count_of_a_message_counts() -> None:
    notes = SettlementBuffer()
    notes.counted(4, 1)
    notes.counted(4, 2)
    notes.counted(6, 1)
    ((kind, content),) = written(notes)
    assert kind == COUNT
    assert list(iter_unpack("<QI", content)) == [(4, 2), (6, 1)]


def test_a_mark_is_ahead_and_rarely_written() -> None:
    notes = SettlementBuffer()
    assert notes.header_mark() == SEEN_AHEAD
    assert not notes.see(SEEN_AHEAD // 2)
    assert written(notes) == []
    assert notes.see(SEEN_AHEAD // 2 + 1)
    ((kind, content),) = written(notes)
    assert kind == SEEN
    assert unpack("<Q", content)[0] == notes.mark == SEEN_AHEAD + SEEN_AHEAD // 2 + 1
    assert written(notes) == []


def test_the_end_says_exactly_what_was_handed_out() -> None:
    notes = SettlementBuffer()
    notes.see(17)
    buffer = RecordBuffer(0, 0)
    notes.write_end(buffer, 50, 0)
    data = bytes(buffer.take())
    assert head(data, 0)[2] == CLOSED
    assert unpack("<Q", payload(data, 0))[0] == 17


def test_a_deleted_log_has_no_notes() -> None:
    notes = SettlementBuffer()
    notes.settled(0, 1)
    notes.counted(3, 1)
    notes.clear()
    assert written(notes) == []

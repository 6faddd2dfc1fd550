"""Opening a damaged log: every row of the table in FORMAT.md."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.kernels.records import record_size
from harebell.store.log.segment import HEADER_BYTES
from tests.unit.store.stores import DIRECTORY, IDENTITY, Bench, message

COUNT = 20


def written(segment_bytes: int = 800) -> Bench:
    """A log of several segments on disk, killed."""
    bench = Bench(segment_bytes=segment_bytes)
    log = bench.log()
    for number in range(COUNT):
        log.append(message(b"%02d" % number + bytes(80)))
    bench.commit()
    bench.store.shut()
    return bench


def change(bench: Bench, name: str, edit: Callable[[bytearray], None]) -> None:
    """Edit the octets of a segment on disk."""
    file = bench.disk.open(f"{DIRECTORY}/{name}")
    data = bytearray(file.read_at(file.size(), 0))
    edit(data)
    file.truncate(0)
    file.write_at(bytes(data), 0)
    file.sync()
    file.close()


def found(bench: Bench) -> list[int]:
    """The numbers of the messages that a new process finds."""
    log = bench.log()
    numbers, position = [], log.first()
    while position < log.end():
        read = log.read(position)
        if read is not None:
            numbers.append(int(read.body[:2]))
        position = log.next(position + 1)
    return numbers


def flip(at: int) -> Callable[[bytearray], None]:
    """Flip one bit."""

    def edit(data: bytearray) -> None:
        data[at] ^= 4

    return edit


def second_record(data: bytearray) -> int:
    """Where the second record of a segment begins."""
    size = record_size(bytes(data), HEADER_BYTES)
    return HEADER_BYTES + size + -size % 8


def damage_second(data: bytearray) -> None:
    """Damage the body of the second record."""
    data[second_record(data) + 60] ^= 1


def damage_length(data: bytearray) -> None:
    """Make the second record claim more than there is."""
    data[second_record(data) + 2] = 0xFF


def test_a_log_in_good_order_is_accepted_without_a_word() -> None:
    again = written().again()
    assert found(again) == list(range(COUNT))
    assert again.reports == []


@pytest.mark.parametrize("edit", [damage_second, damage_length])
@pytest.mark.parametrize("which", [0, -1])
def test_a_damaged_record_is_copied_skipped_and_reported(
    edit: Callable[[bytearray], None], which: int
) -> None:
    bench = written(2000)
    name = bench.files()[which]
    change(bench, name, edit)
    lost = int(name.removesuffix(".seg")) + 1
    for _ in range(2):
        again = bench.again()
        assert found(again) == [number for number in range(COUNT) if number != lost]
        assert [level for level, _ in again.reports] == ["error"]
        assert name in again.reports[0][1]
        assert len(bench.disk.names("quarantine")) == 1


def test_a_torn_tail_is_copied_and_cut_off_once() -> None:
    bench = written()
    name = bench.files()[-1]
    change(bench, name, lambda data: data.__delitem__(slice(len(data) - 24, None)))
    again = bench.again()
    assert found(again) == list(range(COUNT - 1))
    assert [level for level, _ in again.reports] == ["warning"]
    assert len(bench.disk.names("quarantine")) == 1
    log = again.store.logs[IDENTITY]
    assert log.append(message(b"99")) == COUNT - 1
    again.commit()
    last = bench.again()
    assert found(last) == [*range(COUNT - 1), 99]
    assert last.reports == []


def test_the_rest_of_an_older_segment_is_skipped_not_cut() -> None:
    bench = written()
    first, second = bench.files()[:2]
    size = bench.disk.open(f"{DIRECTORY}/{first}").size()
    change(bench, first, lambda data: data.__setitem__(slice(500, None), bytes(len(data) - 500)))
    again = bench.again()
    numbers = found(again)
    assert numbers[-1] == COUNT - 1
    assert set(range(int(second.removesuffix(".seg")), COUNT)) <= set(numbers)
    assert len(numbers) < COUNT
    assert bench.disk.open(f"{DIRECTORY}/{first}").size() == size
    assert [level for level, _ in again.reports] == ["error"]


def test_records_behind_a_damaged_header_prove_themselves() -> None:
    for which in (0, 1, -1):
        bench = written()
        change(bench, bench.files()[which], flip(20))
        again = bench.again()
        assert found(again) == list(range(COUNT))
        assert [level for level, _ in again.reports] == ["error"]


def test_a_segment_without_anything_good_is_moved_away() -> None:
    for which, level in ((1, "error"), (-1, "warning")):
        bench = written()
        name = bench.files()[which]
        change(bench, name, lambda data: data.__setitem__(slice(None), bytes(len(data))))
        again = bench.again()
        numbers = found(again)
        assert [each for each, _ in again.reports] == [level]
        assert name not in bench.files()
        assert len(bench.disk.names("quarantine")) == 1
        assert len(numbers) < COUNT


def test_another_logs_segment_is_moved_away() -> None:
    bench = written()
    other = "f" * 32
    log = bench.store.open_log(other, durable=True)
    log.append(message(b"77"))
    bench.commit()
    bench.disk.rename(f"queues/{other}/{0:020d}.seg", f"{DIRECTORY}/{bench.files()[0]}")
    again = bench.again()
    numbers = found(again)
    assert 77 not in numbers
    assert numbers[-1] == COUNT - 1
    assert [level for level, _ in again.reports] == ["error"]


def test_swapped_segments_of_one_log_are_moved_away() -> None:
    bench = written()
    one, two = bench.files()[:2]
    bench.disk.rename(f"{DIRECTORY}/{one}", f"{DIRECTORY}/swap")
    bench.disk.rename(f"{DIRECTORY}/{two}", f"{DIRECTORY}/{one}")
    bench.disk.rename(f"{DIRECTORY}/swap", f"{DIRECTORY}/{two}")
    again = bench.again()
    numbers = found(again)
    assert len(again.reports) == 2
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == COUNT - 1


def test_a_damaged_note_makes_duplicates_and_is_reported() -> None:
    bench = Bench()
    log = bench.log()
    for number in range(4):
        log.append(message(b"%02d" % number))
    bench.commit()
    log.settle(0)
    bench.commit()
    log.append(message(b"04"))
    bench.commit()
    bench.store.shut()

    def damage_note(data: bytearray) -> None:
        at = HEADER_BYTES
        while data[at + 24] == 1:
            size = record_size(bytes(data), at)
            at += size + -size % 8
        data[at + 36] ^= 1

    change(bench, bench.files()[0], damage_note)
    again = bench.again()
    assert found(again) == [0, 1, 2, 3, 4]
    assert again.reports
    assert again.store.logs[IDENTITY].seen() == 5, "all of it may have been handed out"


def test_octets_missing_at_the_end_of_a_log_closed_in_good_order_are_reported() -> None:
    bench = written()
    again = Bench(bench.disk, clean=True)
    assert found(again) == list(range(COUNT))
    ((level, text),) = again.reports
    assert level == "error"
    assert "missing" in text
    assert again.store.logs[IDENTITY].seen() == COUNT
    again.store.close()
    again.commit()
    last = Bench(bench.disk, clean=True)
    assert found(last) == list(range(COUNT))
    assert last.reports == []


def tear(bench: Bench, name: str, octets: bytes) -> None:
    """Have a segment end with octets that are no record."""

    def edit(data: bytearray) -> None:
        data += octets

    change(bench, name, edit)


def test_a_torn_tail_on_a_full_disk_stays_and_the_log_goes_on_behind_it() -> None:
    bench = written()
    newest = bench.files()[-1]
    tear(bench, newest, b"torn" * 25)
    bench.disk.capacity = bench.disk.used()
    before = bench.disk.content(f"{DIRECTORY}/{newest}")
    full = bench.again()
    assert found(full) == list(range(COUNT))
    assert bench.disk.content(f"{DIRECTORY}/{newest}") == before
    assert [text.partition(": ")[2] for _, text in full.reports] == [
        "100 torn bytes at its end stay, and there is no room for a copy of them"
    ]
    assert not [name for name in bench.disk.paths() if name.endswith(".part")]
    bench.disk.capacity = 0
    log = full.store.logs[IDENTITY]
    log.append(message(b"20 came when there was room again"))
    full.commit()
    later = bench.again()
    assert found(later) == list(range(COUNT + 1))
    (kept,) = bench.disk.paths("quarantine")
    assert bench.disk.content(kept).startswith(b"torn" * 25)
    assert bench.again().log().live() == COUNT + 1


def test_a_first_record_that_is_torn_on_a_full_disk_stays_too() -> None:
    bench = written()
    newest = bench.files()[-1]

    def edit(data: bytearray) -> None:
        del data[HEADER_BYTES + 20 :]

    change(bench, newest, edit)
    bench.disk.capacity = bench.disk.used()
    full = bench.again()
    there = found(full)
    assert there == list(range(len(there)))
    bench.disk.capacity = 0
    full.store.logs[IDENTITY].append(message(b"99 is new"))
    full.commit()
    assert found(bench.again()) == [*there, 99]


def test_damage_on_a_full_disk_is_skipped_where_it_is() -> None:
    bench = written()
    first = bench.files()[0]
    change(
        bench,
        first,
        flip(second_record(bytearray(bench.disk.content(f"{DIRECTORY}/{first}"))) + 50),
    )
    bench.disk.capacity = bench.disk.used()
    full = bench.again()
    assert found(full) == [0, *range(2, COUNT)]
    (report,) = full.reports
    assert report[0] == "error"
    assert report[1].endswith(" are damaged and skipped, and there is no room for a copy of them")


def test_a_new_log_asks_nothing_of_the_disk() -> None:
    bench = Bench()
    bench.disk.hook = lambda _number, kind, path: pytest.fail(f"{kind} of {path}")
    log = bench.store.open_log(bench.store.new_identity(), durable=True)
    assert (log.end(), log.seen()) == (0, 0)

"""Making rows of a log's records: wherever they are, what is settled, damaged or gone."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.gauge import Gauge
from harebell.kernels.batches import BatchBuilder
from harebell.store.log.memory import MemoryLog
from tests.unit.store.stores import DIRECTORY, Bench, message

PLENTY = 10**9


def builder(rows: int = PLENTY, octets: int = PLENTY, scanned: int = PLENTY) -> Any:
    made = BatchBuilder(("value", "offset"), (), "q", None, None, None, None)
    made.limit(rows, octets, scanned)
    return made


def found(of: Any) -> dict[int, bytes]:
    """Position and body of every row."""
    rows, _, (_, ends, data, _, positions) = of.finish()
    numbers = memoryview(positions).cast("q").tolist()
    bounds = memoryview(ends).cast("i").tolist()
    return {numbers[row]: data[bounds[row] : bounds[row + 1]] for row in range(rows)}


def filled(log: Any, first: int, end: int) -> None:
    for number in range(first, end):
        log.append(message(b"%d" % number + b"." * (number % 90)))


def body(number: int) -> bytes:
    return b"%d" % number + b"." * (number % 90)


def test_records_are_rows_wherever_they_are_at_the_moment() -> None:
    bench = Bench(segment_bytes=4096)
    log = bench.log()
    filled(log, 0, 100)
    bench.commit()
    filled(log, 100, 110)
    batch = bench.store.commit.gather()
    assert batch is not None
    filled(log, 110, 120)
    into = builder()
    assert log.append_to(0, 120, into) == 120
    assert found(into) == {number: body(number) for number in range(120)}
    batch.perform()
    bench.store.commit.finish(batch)
    assert log.append_to(95, 115, into) == 115
    assert found(into) == {number: body(number) for number in range(95, 115)}


@pytest.mark.parametrize("memory", [False, True])
def test_a_range_is_read_in_parts_and_what_is_settled_is_passed_over(memory: bool) -> None:
    log: Any = MemoryLog(Gauge()) if memory else Bench(segment_bytes=2048).log()
    filled(log, 0, 200)
    settled = {0, 1, 2, 50, 51, *range(120, 190)}
    for number in settled:
        log.settle(number)
    into = builder(rows=7)
    position, rows = 0, {}
    while position < 200:
        reached = log.append_to(position, 200, into)
        assert reached > position
        position = reached
        rows |= found(into)
    assert rows == {number: body(number) for number in range(200) if number not in settled}
    assert log.append_to(200, 300, into) == 300
    assert log.append_to(191, 192, into) == 192
    assert list(found(into)) == [191]


def test_a_filter_that_lets_nothing_through_still_ends() -> None:
    log = Bench().log()
    filled(log, 0, 50)
    into = builder(scanned=1000)
    into.filter(b"other", False, 0, 0)
    reached = log.append_to(0, 50, into)
    assert 0 < reached < 50
    assert found(into) == {}


def test_failed_deliveries_are_counted() -> None:
    log = Bench().log()
    filled(log, 0, 3)
    log.set_count(1, 4)
    into = BatchBuilder(("delivery_count",), (), "q", None, None, None, None)
    into.limit(PLENTY, PLENTY, PLENTY)
    log.append_to(0, 3, into)
    _, _, (_, counts) = into.finish()
    assert memoryview(counts).cast("i").tolist() == [0, 4, 0]


def test_failed_deliveries_of_a_dead_letter_in_the_queues_before_count_too() -> None:
    log = Bench().log()
    filled(log, 0, 1)
    for failed in (2, 3):
        letter = log.read(0)
        letter.deliveries = failed
        log.append(letter)
    log.set_count(2, 4)
    into = BatchBuilder(("delivery_count", "redelivered"), (), "q", None, None, None, None)
    into.limit(PLENTY, PLENTY, PLENTY)
    log.append_to(0, 3, into)
    assert log.read(1).deliveries == 2
    _, _, (_, counts, _, redelivered) = into.finish()
    assert memoryview(counts).cast("i").tolist() == [0, 2, 7]
    assert bytes(redelivered)[0] == 0b100


def damaged(bench: Bench) -> Any:
    """A log on disk whose second message is damaged."""
    log = bench.log()
    filled(log, 0, 5)
    bench.commit()
    [name] = bench.files()
    file = bench.disk.open(f"{DIRECTORY}/{name}")
    data = file.read_at(file.size(), 0)
    at = data.index(body(1))
    file.write_at(b"?", at)
    return log


def test_a_damaged_record_ends_the_batch_or_is_passed_over_and_reported() -> None:
    bench = Bench()
    log = damaged(bench)
    into = builder()
    assert log.append_to(0, 5, into) == 1
    assert (into.bad, into.full) == (1, True)
    assert list(found(into)) == [0]
    into.skip = True
    assert log.append_to(0, 5, into) == 5
    assert into.lost == 1
    assert list(found(into)) == [0, 2, 3, 4]
    assert len(bench.reports) == 1
    assert "the message at position 1 is kept back" in bench.reports[0][1]


def test_an_answer_of_the_disk_that_is_an_error_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    log = bench.log()
    filled(log, 0, 3)
    bench.commit()

    def fail(_number: int, kind: str, _path: str) -> None:
        if kind == "read":
            raise OSError(5, "Input/output error")

    bench.disk.hook = fail
    into = builder()
    assert log.append_to(0, 3, into) == 0
    assert into.bad == 0
    assert "Input/output error" in bench.reports[0][1]

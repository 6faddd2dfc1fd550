"""The redo file: the batch of a transaction is found whole after a power loss, or not at all."""

from __future__ import annotations

from itertools import count

import pytest

from harebell.base.errors import StoreError
from harebell.base.ports import Log
from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.store.check import Survey
from harebell.store.limits import REDO_KEEP_BYTES
from harebell.store.redo import PATH, Planned, decode, encode
from tests.sim.disk import PowerCut, Random, SimDisk
from tests.unit.store.stores import Bench, message

ONE, TWO = "a" * 32, "b" * 32
PLANNED: list[Planned] = [("queues/x/1.seg", 0, b"abc"), ("queues/y/2.seg", 64, b"")]
IMAGES = 40


def _open(bench: Bench) -> tuple[Log, Log]:
    open_log = bench.store.open_log
    return open_log(ONE, durable=True), open_log(TWO, durable=True)


def _prepared() -> tuple[Bench, Log, Log]:
    bench = Bench()
    one, two = _open(bench)
    one.append(message())
    bench.commit()
    return bench, one, two


def _found(disk: SimDisk) -> tuple[int, bool, int]:
    one, two = _open(Bench(disk))
    return one.end(), one.next(0) > 0, two.end()


def _cut_at(number: int, *, joint: bool) -> set[tuple[int, bool, int]]:
    """What is found when the power goes after so many operations of a batch over two logs."""
    bench, one, two = _prepared()
    bench.store.commit.joint = joint
    one.settle(0)
    for _ in range(3):
        one.append(message())
        two.append(message())
    if not bench.cut_power(number):
        return set()
    return {_found(bench.disk.crash(Random(seed))) for seed in range(IMAGES)}


def test_a_power_loss_keeps_all_of_a_joint_batch_or_nothing() -> None:
    seen: set[tuple[int, bool, int]] = set()
    number = 1
    while found := _cut_at(number, joint=True):
        seen |= found
        number += 1
    assert seen == {(1, False, 0), (4, True, 3)}


def test_a_kill_keeps_all_of_a_joint_batch_with_a_large_message_or_nothing() -> None:
    # Its segment is new, and gets several writes.
    seen: set[tuple[int, bool, int]] = set()
    for number in count(1):
        bench, one, two = _prepared()
        bench.store.commit.joint = True
        one.append(message())
        two.append(message(bytes(LARGE_RECORD_BYTES)))
        if not bench.cut_power(number):
            break
        seen.add(_found(bench.disk.copy()))
    assert seen == {(1, False, 0), (2, False, 1)}


def test_without_the_redo_file_a_part_would_be_found() -> None:
    seen: set[tuple[int, bool, int]] = set()
    number = 1
    while found := _cut_at(number, joint=False):
        seen |= found
        number += 1
    assert not seen <= {(1, False, 0), (4, True, 3)}


def test_an_encoded_batch_is_decoded_and_an_incomplete_one_is_not() -> None:
    content = encode(PLANNED)
    assert decode(content) == PLANNED
    assert decode(content + b"of a longer one before") == PLANNED
    for size in range(len(content)):
        assert decode(content[:size]) == []
    for at in [*range(12), *range(16, len(content))]:
        assert decode(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]) == []


def test_a_clean_end_leaves_nothing_to_do_once_more() -> None:
    bench, one, two = _prepared()
    bench.store.commit.joint = True
    one.append(message())
    two.append(message())
    bench.commit()
    assert bench.disk.content(PATH)
    bench.store.close()
    bench.commit()
    bench.store.shut()
    assert not bench.disk.content(PATH)


# --- starts that find something to do once more -------------------------------------------------


def _interrupted() -> SimDisk:
    """A disk on which the redo file of a transaction is whole, and half of its writes are done."""
    bench, one, two = _prepared()
    bench.store.commit.joint = True
    for _ in range(3):
        one.append(message())
        two.append(message())
    batch = bench.store.commit.gather()
    assert batch is not None

    def cut(_operation: int, kind: str, path: str) -> None:
        if kind in ("write", "create") and path.startswith(f"queues/{TWO}"):
            raise PowerCut

    bench.disk.hook = cut
    with pytest.raises(PowerCut):
        batch.perform()
    return bench.disk.copy()


def test_a_start_writes_the_rest_and_says_so() -> None:
    disk = _interrupted()
    bench = Bench(disk)
    assert [level for level, text in bench.reports if "amid a commit" in text] == ["warning"]
    assert _found(disk) == (4, False, 3)
    assert not disk.content(PATH)


def test_a_start_finds_octets_that_are_there_and_writes_none_again() -> None:
    bench, one, two = _prepared()
    bench.store.commit.joint = True
    one.append(message())
    two.append(message())
    bench.commit()
    disk = bench.disk.copy()
    disk.capacity = disk.used()
    assert disk.content(PATH)
    again = Bench(disk)
    assert not again.reports
    assert not disk.content(PATH)
    assert [log.end() for log in _open(again)] == [2, 1]


def test_a_start_on_a_full_disk_is_refused_until_there_is_room_and_changes_nothing() -> None:
    disk = _interrupted()
    disk.capacity = disk.used()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"cannot finish the last transaction.*No space left"):
            Bench(disk)
        assert not disk.handles
    disk.capacity = 0
    assert _found(disk) == (4, False, 3)


def test_a_check_shows_what_a_start_would_find_and_changes_nothing() -> None:
    disk = _interrupted()
    before = {path: disk.content(path) for path in disk.paths()}
    survey = Survey(disk, None)
    assert ["amid a commit" in text for text in survey.remarks] == [True]
    found = {holding.identity: holding for holding in survey.holdings()}
    assert {identity: each.messages for identity, each in found.items()} == {ONE: 4, TWO: 3}
    assert not any(each.damage or each.harmless for each in found.values())
    bodies = [each.body for _, each, _ in survey.messages(found[TWO])]
    assert bodies == [message().body] * 3
    survey.close()
    assert {path: disk.content(path) for path in disk.paths()} == before
    assert not disk.handles


@pytest.mark.parametrize("size", [None, 40])
def test_writes_behind_the_end_of_a_file_are_of_another_time_and_are_not_done(
    size: int | None,
) -> None:
    """Where syncs are put off, a power loss may keep the file and forget what came before it."""
    disk = _interrupted()
    path = f"queues/{ONE}/{0:020d}.seg"
    if size is None:
        disk.remove(path)
    else:
        disk.replace(path, disk.content(path)[:size])
    Bench(disk)
    assert not disk.content(PATH)
    assert disk.names(f"queues/{TWO}") == []
    assert disk.names(f"queues/{ONE}") == ([] if size is None else [path.rpartition("/")[2]])


def test_a_redo_file_that_is_too_large_to_keep_is_emptied_at_once() -> None:
    bench, one, two = _prepared()
    bench.store.commit.joint = True
    one.append(message(bytes(REDO_KEEP_BYTES)))
    two.append(message())
    bench.commit()
    assert not bench.disk.content(PATH)
    assert _found(bench.disk.crash(Random(1))) == (2, False, 1)


def test_a_publish_outside_of_transactions_writes_no_redo_file() -> None:
    bench, one, two = _prepared()
    for _ in range(3):
        one.append(message())
        two.append(message())
        bench.commit()
    assert PATH not in bench.disk.paths()

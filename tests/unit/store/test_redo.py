"""The redo file: the batch of a transaction is found whole after a power loss, or not at all."""

from __future__ import annotations

from harebell.base.ports import Log
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
    left = number

    def after() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise PowerCut

    batch = bench.store.commit.gather()
    assert batch is not None
    bench.disk.after = after
    try:
        batch.perform()
    except PowerCut:
        bench.disk.after = None
        return {_found(bench.disk.crash(Random(seed))) for seed in range(IMAGES)}
    return set()


def test_a_power_loss_keeps_all_of_a_joint_batch_or_nothing() -> None:
    seen: set[tuple[int, bool, int]] = set()
    number = 1
    while found := _cut_at(number, joint=True):
        seen |= found
        number += 1
    assert seen == {(1, False, 0), (4, True, 3)}


def test_without_the_redo_file_a_part_would_be_found() -> None:
    seen: set[tuple[int, bool, int]] = set()
    number = 1
    while found := _cut_at(number, joint=False):
        seen |= found
        number += 1
    assert not seen <= {(1, False, 0), (4, True, 3)}


def test_what_is_encoded_is_decoded_and_nothing_of_what_is_not_whole() -> None:
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

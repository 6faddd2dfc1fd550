"""The indexes of logs and segments only save time: what is opened is the same without them."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.message import PERSISTENT
from harebell.store.log import log_index
from harebell.store.log.loaded_offsets import LoadedOffsets
from harebell.store.log.segment import HEADER_BYTES, INDEX_SUFFIX, SUFFIX, seed_of
from harebell.store.log.segment_index import find_offsets
from harebell.store.recovery import RecoveredLog, Recovery
from tests.sim.disk import SimDisk
from tests.unit.store.stores import DIRECTORY, IDENTITY, Bench, message

SEGMENT_BYTES = 1024
LIMIT_BYTES = 160
SMALLEST = 4
STATE = f"{DIRECTORY}/{log_index.NAME}"

NUMBERS = st.integers(0, 200)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 40), st.integers(0, 9)),
        st.tuples(st.just("large"), st.integers(300, 1500)),
        st.tuples(st.just("settle"), NUMBERS),
        st.tuples(st.just("settle_range"), NUMBERS, st.integers(1, 60)),
        st.tuples(st.just("set_count"), NUMBERS, st.integers(1, 5)),
        st.tuples(st.just("see"), NUMBERS),
        st.tuples(st.just("read"), NUMBERS),
        st.tuples(st.just("stop")),
        st.tuples(st.just("kill")),
        st.tuples(st.just("keep_state")),
        st.tuples(st.just("put_state_back")),
        st.tuples(st.just("tamper"), NUMBERS, NUMBERS),
    ),
    max_size=60,
)


class Lives:
    """A log in many lives of a process, whose offsets rarely are in memory."""

    def __init__(self) -> None:
        self.bodies: dict[int, bytes] = {}
        self.live: set[int] = set()
        self.passing: set[int] = set()
        self._kept_state: bytes | None = None
        self._start(SimDisk(), clean=False)

    def _start(self, disk: SimDisk, *, clean: bool) -> None:
        self.bench = Bench(disk, SEGMENT_BYTES, clean=clean)
        self.bench.store.offsets = LoadedOffsets(
            disk, self.bench.store.handles, LIMIT_BYTES, SMALLEST
        )
        self.log = self.bench.log()
        self.bench.commit()

    def append(self, count: int, passing: int) -> None:
        """Append messages, one of which may end with the process."""
        for number in range(count):
            ends = passing == 1 and number == 0
            body = b"%d" % self.log.end() * (number % 7)
            position = self.log.append(message(body, 1 if ends else PERSISTENT))
            self.bodies[position] = body
            self.live.add(position)
            if ends:
                self.passing.add(position)
            if number % 5 == 0:
                self.bench.commit()

    def large(self, size: int) -> None:
        position = self.log.append(message(bytes(size)))
        self.bodies[position] = bytes(size)
        self.live.add(position)

    def settle(self, position: int) -> None:
        self.log.settle(position)
        self.live.discard(position)
        self.bench.commit()

    def settle_range(self, first: int, count: int) -> None:
        self.log.settle_range(first, first + count)
        self.live -= set(range(first, first + count))

    def set_count(self, position: int, count: int) -> None:
        self.log.set_count(position, count)

    def see(self, position: int) -> None:
        self.log.see(min(position, self.log.end()))

    def read(self, position: int) -> None:
        read = self.log.read(position)
        assert (read.body if read else None) == (
            self.bodies[position] if position in self.live else None
        )

    def stop(self) -> None:
        """End in good order."""
        store = self.bench.store
        store.close()
        self.bench.commit()
        store.describe()
        store.shut()
        self._again(clean=True)

    def kill(self) -> None:
        self.bench.commit()
        self.bench.store.shut()
        self._again(clean=False)

    def keep_state(self) -> None:
        """Remember the state of the log, to put it back later."""
        if STATE in self.bench.disk.paths():
            self._kept_state = self.bench.disk.content(STATE)

    def put_state_back(self) -> None:
        if self._kept_state is not None:
            self.bench.disk.replace(STATE, self._kept_state)

    def tamper(self, which: int, where: int) -> None:
        """Change, cut or empty an index."""
        disk = self.bench.disk
        paths = [path for path in disk.paths("queues") if not path.endswith(SUFFIX)]
        if paths:
            path = paths[which % len(paths)]
            content = bytearray(disk.content(path))
            if which % 3 and content:
                content[where % len(content)] ^= 1 << where % 8
            else:
                del content[where % (len(content) + 1) :]
            disk.replace(path, content)

    def _again(self, *, clean: bool) -> None:
        disk = self.bench.disk
        compare(opened(disk, index=True), opened(disk, index=False))
        self._start(disk, clean=clean)
        self.live -= self.passing
        self.check()

    def check(self) -> None:
        """The log has every live message, and no other."""
        position, found = self.log.first(), {}
        while position < self.log.end():
            read = self.log.read(position)
            assert read is not None
            found[position] = read.body
            position = self.log.next(position + 1)
        assert found == {position: self.bodies[position] for position in self.live}
        assert self.log.live() == len(self.live)
        assert self.log.live_in(0, self.log.end()) == len(self.live)
        assert [level for level, _ in self.bench.reports if level != "info"] == []


def opened(disk: SimDisk, *, index: bool) -> tuple[SimDisk, RecoveredLog]:
    """A copy of a disk, and what is in the log there."""
    copy = disk.copy()
    recovery = Recovery(copy, IDENTITY, DIRECTORY, lambda *_: None, index=index)
    return copy, recovery.run()


def compare(mine: tuple[SimDisk, RecoveredLog], read: tuple[SimDisk, RecoveredLog]) -> None:
    """What is opened by the state of a log is what its segments say."""
    disk, log = mine
    _, plain = read
    assert [each.first for each in log.segments] == [each.first for each in plain.segments]
    for one, other in zip(log.segments, plain.segments, strict=True):
        if not one.positions.is_loaded():
            find_offsets(disk.open(one.path), one, seed_of(IDENTITY))
        places = range(one.first, other.positions.end())
        assert one.positions.end() == other.positions.end()
        assert one.positions.live == other.positions.live
        assert one.end() == other.end()
        assert one.newest == other.newest
        for position in places:
            assert one.positions.settled(position) == other.positions.settled(position)
            assert one.positions.offset(position) == other.positions.offset(position)
        assert (one.targets or set()) >= (other.targets or set())
    assert log.counts == plain.counts
    assert log.seen >= plain.seen
    assert (log.handed, log.closed, log.damaged) == (plain.handed, plain.closed, plain.damaged)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS)
def test_a_log_is_opened_the_same_with_and_without_its_indexes(
    steps: list[tuple[str, int, int]],
) -> None:
    lives = Lives()
    lives.append(60, 0)
    for name, *values in steps:
        step: Callable[..., None] = getattr(lives, name)
        step(*values)
    lives.stop()
    lives.kill()


def stopped(count: int = 60) -> Lives:
    """A log that was closed in good order, and opened again."""
    lives = Lives()
    lives.append(count, 0)
    lives.stop()
    return lives


def segments(lives: Lives) -> list[str]:
    """The names of the segments of the log."""
    return [name for name in lives.bench.files() if name.endswith(SUFFIX)]


def reads(lives: Lives) -> tuple[Bench, list[str]]:
    """Open the log again; which segments were read from their records."""
    bench = Bench(lives.bench.disk.copy(), SEGMENT_BYTES, clean=True)
    bench.store.offsets = LoadedOffsets(bench.disk, bench.store.handles, LIMIT_BYTES, SMALLEST)
    sizes: dict[str, int] = {}
    plain = bench.disk.open

    def opening(path: str, *, create: bool = False):  # type: ignore[no-untyped-def]
        file = plain(path, create=create)
        read_at = file.read_at

        def reading(size: int, offset: int) -> bytes:
            data: bytes = read_at(size, offset)
            sizes[path] = sizes.get(path, 0) + len(data)
            return data

        file.read_at = reading
        return file

    bench.disk.open = opening  # type: ignore[method-assign]
    bench.log()
    return bench, [
        path for path, size in sizes.items() if size > 2 * HEADER_BYTES and path.endswith(SUFFIX)
    ]


def test_after_an_orderly_end_only_the_newest_segment_is_read() -> None:
    lives = stopped()
    assert len(segments(lives)) > 3
    bench, read = reads(lives)
    assert read == [f"{DIRECTORY}/{segments(lives)[-1]}"]
    assert bench.reports == []


def test_an_index_of_other_segments_is_removed() -> None:
    lives = stopped()
    before = lives.bench.disk.copy()
    lives.settle_range(0, 30)
    lives.append(30, 0)
    lives.stop()
    newer = lives.bench.disk.content(STATE)
    before.replace(STATE, newer)
    bench = Bench(before, SEGMENT_BYTES)
    assert bench.log().live() == 60
    assert [level for level, _ in bench.reports] == ["info"]
    assert STATE not in before.paths()


def test_damage_in_a_covered_segment_is_kept_back_when_it_is_read_and_skipped_later() -> None:
    lives = stopped()
    disk = lives.bench.disk
    path = f"{DIRECTORY}/{segments(lives)[0]}"
    content = bytearray(disk.content(path))
    content[-10] ^= 1
    disk.replace(path, content)
    bench = Bench(disk, SEGMENT_BYTES, clean=True)
    log = bench.log()
    assert bench.reports == []
    missing = [position for position in range(60) if log.read(position) is None]
    assert len(missing) == 1
    assert ["kept back" in text for _, text in bench.reports] == [True]
    bench.store.close()
    bench.commit()
    bench.store.describe()
    bench.store.shut()
    # The segment was left out of the index, so this start sees the damage, and copies it.
    last = Bench(disk, SEGMENT_BYTES, clean=True)
    assert last.log().live() == 59
    assert [level for level, _ in last.reports] == ["error"]
    assert len(disk.names("quarantine")) == 1


def test_damage_is_reported_as_damage_without_the_offsets_in_memory() -> None:
    lives = stopped()
    disk = lives.bench.disk
    path = f"{DIRECTORY}/{segments(lives)[0]}"
    content = bytearray(disk.content(path))
    content[-10] ^= 1
    disk.replace(path, content)
    bench = Bench(disk, SEGMENT_BYTES, clean=True)
    bench.store.offsets = LoadedOffsets(
        disk, bench.store.handles, LIMIT_BYTES, SMALLEST, indexes=False
    )
    log = bench.log()
    for segment in log.segments[:-1]:
        segment.positions.drop()
    missing = [position for position in range(60) if log.read(position) is None]
    assert len(missing) == 1
    assert [text.endswith("kept back: its bytes are damaged") for _, text in bench.reports] == [
        True
    ]


def test_a_removed_segment_takes_its_index_along() -> None:
    lives = stopped()
    indexes = [name for name in lives.bench.files() if name.endswith(INDEX_SUFFIX)]
    assert indexes
    lives.settle_range(0, 60)
    lives.bench.commit()
    assert not [name for name in lives.bench.files() if name.endswith(INDEX_SUFFIX)]


def test_an_index_without_its_segment_is_removed_by_the_next_start() -> None:
    lives = stopped()
    disk = lives.bench.disk
    stray = f"{DIRECTORY}/{7:020d}{INDEX_SUFFIX}"
    disk.replace(stray, b"x")
    Bench(disk, SEGMENT_BYTES).log()
    assert stray not in disk.paths()


def test_no_more_offsets_are_in_memory_than_the_limit() -> None:
    lives = Lives()
    for _ in range(20):
        lives.append(40, 0)
        assert lives.bench.store.offsets.byte_count <= LIMIT_BYTES
    lives.check()
    assert lives.bench.store.offsets.byte_count <= LIMIT_BYTES

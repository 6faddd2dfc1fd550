"""Damaged files: everything is detected, nothing wrong is given out, and little is lost.

A store that ended in good order and one that a crash left are damaged in every way: bits flip,
files are cut short, sectors are zero or hold garbage, files are swapped. The store then opens, says
what is damaged, keeps a copy, and still has every message whose own octets are whole. What was
settled may be back when the record that said so is damaged. Padding means nothing.

What no format of this kind can see: a file that is cut exactly between two records, unless it is
the newest of a log that was closed in good order.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

import pytest

from harebell.kernels.records import MESSAGE, good, head
from harebell.store.log.log_index import is_index
from harebell.store.log.segment import HEADER_BYTES, INDEX_SUFFIX, seed_of, unused
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import SECTOR, Random, SimDisk
from tests.sim.logs import Accounts, Life, Picture

SEED = int(os.environ.get("HAREBELL_DAMAGE_SEED", "1"))
FLIPS = 10_000
OTHERS = 1_000
SOAK_FLIPS = 400_000
SOAK_OTHERS = 100_000
DEEPER = 0.1

Changes = dict[str, bytes]
Where = tuple[str, int, int]


@dataclass(frozen=True)
class Record:
    """Where a record stands.

    Args:
        path, start, end: its octets, without padding.
        place: of the message: log and position; None for a record of another kind.
    """

    path: str
    start: int
    end: int
    place: tuple[str, int] | None


class Store:
    """A store with something in it, and what is found there when it is whole.

    Args:
        clean: whether it ended in good order.
        indexed: whether it has indexes of its logs and their segments.

    Attributes:
        indexes: these files.
    """

    def __init__(self, clean: bool, *, indexed: bool = False) -> None:
        self.clean = clean
        self.name = "closed in good order" if clean else "left by a crash"
        self.disk = SimDisk(seed=SEED)
        self.definitions = SimDefinitions(self.disk)
        self.accounts = Accounts()
        life = Life(self.disk, self.definitions, self.accounts)
        life.recover()
        rng = Random(f"damage {SEED}")
        for sizes, count in (((0, 30, 100), 20), ((300, 500), 8)):
            identity = life.new_log(segment_bytes=1024)
            for number in range(count):
                # No index stands for a segment with a message that ends with the process.
                life.append(identity, rng.choice(sizes), indexed or rng.random() < 0.9, rng)
                if number % 4 == 3:
                    self._consume(life, identity, number, rng)
        if clean:
            # Indexes stand for damaged records until these are read.
            assert life.stop(describes=indexed)
        self.files = {p: self.disk.content(p) for p in self.disk.paths() if p.endswith(".seg")}
        self.indexes = {p: self.disk.content(p) for p in self.disk.paths() if is_index(p)}
        self.records = [each for path in self.files for each in self._records(path)]
        life, picture = self.open({})
        assert not life.damages()
        self.picture = picture
        self.found = {(identity, position) for identity, position, _, _ in picture}
        self.seen = {identity: log.seen() for identity, log in life.logs.items()}
        self.meaningful = {path: self._meaningful(path) for path in self.files}

    @staticmethod
    def _consume(life: Life, identity: str, number: int, rng: Random) -> None:
        """Settle one of the messages that are there, note that others failed, and commit."""
        for _ in range(3):
            life.deliver(identity)
        life.settle(identity, rng.randrange(len(life.held[identity])))
        life.count(identity, 0, number)
        assert life.commit()

    def _records(self, path: str) -> list[Record]:
        data, identity = self.files[path], path.split("/")[1]
        found, at = [], HEADER_BYTES
        while at < len(data) and data[at:] != unused(at, len(data) - at):
            assert good(data, at, seed_of(identity)), f"{path} at {at}"
            position, _, kind, size = head(data, at)
            place = (identity, position) if kind == MESSAGE else None
            found.append(Record(path, at, at + size, place))
            at += size + -size % 8
        return found

    def _meaningful(self, path: str) -> bytearray:
        """For every octet of a file 1 when it is not padding."""
        marks = bytearray(len(self.files[path]))
        marks[:HEADER_BYTES] = b"\1" * HEADER_BYTES
        for record in self.records:
            if record.path == path:
                marks[record.start : record.end] = b"\1" * (record.end - record.start)
        return marks

    def open(self, changes: Changes, *, unreadable: int = 0) -> tuple[Life, Picture]:
        """Open a copy of it with some files changed, and at most so many messages kept back."""
        disk = self.disk.copy()
        for path, content in changes.items():
            disk.replace(path, content)
        rows = self.definitions.crash(disk, Random(SEED))
        life = Life(disk, rows, self.accounts.copy(), 1, clean=self.clean)
        life.recover()
        return life, life.look("damaged", unreadable=unreadable)

    def newest(self, path: str) -> bool:
        """Whether a file is the newest segment of its log."""
        directory = path.rpartition("/")[0]
        return path == max(each for each in self.files if each.startswith(f"{directory}/"))

    # --- judging --------------------------------------------------------------------------------

    def judge(self, changes: Changes, where: str, *, deeper: bool) -> str:
        """Damage it, open it, and say what came of that."""
        where = f"{self.name}, {where}"
        life, picture = self.open(changes)
        reports = life.damages()
        self._nothing_wrong(life, picture, where)
        now = {(identity, position) for identity, position, _, _ in picture}
        hit = [each for each in self.records if self._is_hit(each, changes)]
        lost = self.found - now
        excess = lost - {each.place for each in hit if each.place is not None}
        assert not excess, f"{where}: whole messages are gone: {sorted(excess)[:3]}"
        for identity, log in life.logs.items():
            assert log.seen() >= min(self.seen[identity], log.end()), f"{where}: a mark is lost"
        if self._matters(changes):
            assert reports, f"{where}: nobody said a word; {len(lost)} are lost"
            self._has_copies(life, hit, changes, where)
        elif not reports:
            assert picture == self.picture or self._invisible(changes), f"{where}: silent change"
        if deeper:
            self._again(life, picture, where)
        return "lost" if lost else "back" if now - self.found else "whole"

    def judge_indexes(self, changes: Changes, where: str) -> None:
        """Damage indexes, and find everything as it was."""
        life, picture = self.open(changes)
        assert picture == self.picture, where
        assert not life.damages(), f"{where}: {life.damages()}"
        seen = {identity: log.seen() for identity, log in life.logs.items()}
        assert seen == self.seen, where

    def judge_covered(self, changes: Changes, where: str) -> str:
        """Damage segments that indexes stand for, and say what came of that."""
        hit = [each for each in self.records if self._is_hit(each, changes)]
        places = {each.place for each in hit if each.place is not None}
        life, picture = self.open(changes, unreadable=len(places))
        self._nothing_wrong(life, picture, where)
        lost = self.found - {(identity, position) for identity, position, _, _ in picture}
        assert lost <= places, f"{where}: whole messages are gone: {sorted(lost - places)[:3]}"
        assert life.damages() or not lost, f"{where}: nobody said a word; {len(lost)} are lost"
        kept_back = sum(log.live() for log in life.logs.values()) - len(picture)
        assert life.stop(), where
        # The segments that could not be read are left out of the indexes: now they are looked at.
        last = Life(life.disk, life.definitions, life.accounts, 2, clean=True)
        last.recover()
        assert last.look(where) == picture, f"{where}: the next start finds something else"
        return "kept back" if kept_back else "lost" if lost else "whole"

    def _nothing_wrong(self, life: Life, picture: Picture, where: str) -> None:
        ledger = life.accounts.ledger.copy()
        for identity, _, octets, _ in picture:
            ledger.delivers(identity, life.number_in(octets), octets, redelivered=True)
        verdict = ledger.judge()
        assert not verdict.changed, f"{where}: {verdict.changed[:2]}"
        assert not verdict.phantom, f"{where}: {verdict.phantom[:2]}"

    def _is_hit(self, record: Record, changes: Changes) -> bool:
        """Whether a record's octets are damaged, or in a file that belongs elsewhere."""
        if record.path not in changes:
            return False
        now = changes[record.path][record.start : record.end]
        old = self.files[record.path][record.start : record.end]
        return now != old or self._foreign(record.path, changes)

    def _foreign(self, path: str, changes: Changes) -> bool:
        """Whether a file has the header of another."""
        now = changes[path][:HEADER_BYTES]
        return now != self.files[path][:HEADER_BYTES] and any(
            now == content[:HEADER_BYTES] for content in self.files.values()
        )

    def _matters(self, changes: Changes) -> bool:
        """Whether anything but padding is damaged in a way that can be seen."""
        for path, content in changes.items():
            old, marks = self.files[path], self.meaningful[path]
            shared = min(len(old), len(content))
            if any(marks[at] for at in range(shared) if old[at] != content[at]):
                return True
            if (
                len(content) < len(old)
                and any(marks[shared:])
                and not self._at_boundary(path, shared)
            ):
                return True
            if len(content) < len(old) and self.clean and self.newest(path) and any(marks[shared:]):
                return True
        return False

    def _at_boundary(self, path: str, size: int) -> bool:
        """Whether a file that is cut here ends with a whole record, or its padding."""
        return size >= HEADER_BYTES and not any(
            each.start < size < each.end for each in self.records if each.path == path
        )

    def _invisible(self, changes: Changes) -> bool:
        return any(len(content) < len(self.files[path]) for path, content in changes.items())

    def _has_copies(self, life: Life, hit: list[Record], changes: Changes, where: str) -> None:
        """What is left of every damaged record is in its file or in quarantine."""
        disk = life.disk
        kept = [disk.content(path) for path in disk.paths("quarantine")] if _has(disk) else []
        for record in hit:
            octets = changes[record.path][record.start : record.end]
            copied = not octets or any(octets in each for each in kept)
            assert copied, f"{where}: no copy of {record}"

    def _again(self, life: Life, picture: Picture, where: str) -> None:
        """The next start finds the same; work goes on, and a clean end follows."""
        disk = life.disk.copy()
        before = {path: disk.content(path) for path in disk.paths()}
        rows = life.definitions.crash(disk, Random(1))
        again = Life(disk, rows, life.accounts.copy(), 2, clean=self.clean)
        again.recover()
        assert again.look(where) == picture, f"{where}: the next start finds something else"
        after = {path: disk.content(path) for path in disk.paths()}
        assert before == after, f"{where}: the next start changes files"
        identity = next(iter(again.logs))
        number = again.accounts.numbers
        again.append(identity, 20, True, Random(2))
        assert again.stop(), where
        last = Life(disk, rows, again.accounts, 3)
        last.recover()
        there = [last.number_in(octets) for _, _, octets, _ in last.look(where)]
        assert number in there, f"{where}: a message that came later is gone"


def _has(disk: SimDisk) -> bool:
    return any(path.startswith("quarantine/") for path in disk.paths())


STORES = [Store(clean=True), Store(clean=False)]
INDEXED = Store(clean=True, indexed=True)


def _flip(store: Store, rng: Random) -> tuple[Changes, str]:
    path = rng.choice(sorted(store.files))
    content = bytearray(store.files[path])
    at, bit = rng.randrange(len(content)), rng.randrange(8)
    content[at] ^= 1 << bit
    return {path: bytes(content)}, f"bit {bit} of octet {at} of {path} flipped"


def _other(store: Store, rng: Random) -> tuple[Changes, str]:
    paths = sorted(store.files)
    path = rng.choice(paths)
    old = store.files[path]
    kind = rng.choice(("cut", "zero", "garbage", "swap", "stale", "several"))
    sector = rng.randrange(-(-len(old) // SECTOR)) * SECTOR
    length = min(SECTOR, len(old) - sector)
    if kind == "cut":
        size = rng.randrange(len(old))
        return {path: old[:size]}, f"{path} cut to {size}"
    if kind in ("zero", "garbage"):
        now = bytes(length) if kind == "zero" else rng.randbytes(length)
        return {path: old[:sector] + now + old[sector + length :]}, f"{kind} at {sector} of {path}"
    other = rng.choice(paths)
    if kind == "swap":
        return {path: store.files[other], other: old}, f"{path} and {other} swapped"
    if kind == "stale":
        return {path: store.files[other]}, f"{path} is a copy of {other}"
    content = bytearray(old)
    places = sorted(rng.randrange(len(old)) for _ in range(rng.randint(2, 6)))
    for at in places:
        content[at] = rng.randrange(256)
    return {path: bytes(content)}, f"octets {places} of {path} changed"


def _run(make: object, count: int, what: str) -> None:
    print(f"damage: {count} {what}, seed {SEED}")  # noqa: T201 - for a replay
    rng = Random(f"{what} {SEED}")
    outcomes: Counter[str] = Counter()
    for number in range(count):
        store = STORES[number % 2]
        changes, where = make(store, rng)  # type: ignore[operator]
        where = f"seed {SEED}, {what} {number}, {where}"
        outcomes[store.judge(changes, where, deeper=rng.random() < DEEPER)] += 1
    print(f"damage: {outcomes.total()} {what}: {dict(outcomes)}")  # noqa: T201 - the counts
    assert outcomes["lost"], "nothing was ever damaged"
    assert outcomes["whole"], "everything was always lost"


@pytest.mark.timeout(1_800)
def test_every_flipped_bit_is_detected_or_harmless() -> None:
    _run(_flip, FLIPS, "flips")


@pytest.mark.timeout(1_800)
def test_every_other_damage_is_detected_or_harmless() -> None:
    _run(_other, OTHERS, "other damages")


def test_a_damaged_index_changes_nothing() -> None:
    assert any(path.endswith(INDEX_SUFFIX) for path in INDEXED.indexes)
    rng = Random(f"indexes {SEED}")
    for number in range(OTHERS):
        path = rng.choice(sorted(INDEXED.indexes))
        content = bytearray(INDEXED.indexes[path])
        at = rng.randrange(len(content))
        if number % 4:
            content[at] ^= 1 << rng.randrange(8)
        else:
            del content[at:]
        INDEXED.judge_indexes({path: bytes(content)}, f"seed {SEED}, octet {at} of {path}")


@pytest.mark.timeout(1_800)
def test_damage_behind_an_index_is_kept_back_and_looked_at_later() -> None:
    rng = Random(f"covered {SEED}")
    outcomes: Counter[str] = Counter()
    for number in range(2 * OTHERS):
        changes, where = (_flip if number % 4 else _other)(INDEXED, rng)
        outcomes[INDEXED.judge_covered(changes, f"seed {SEED}, covered {number}, {where}")] += 1
    print(f"damage: {outcomes.total()} behind an index: {dict(outcomes)}")  # noqa: T201 - the counts
    assert outcomes["kept back"], "nothing was ever covered"
    assert outcomes["whole"], "everything was always lost"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_every_damage_of_a_long_run_is_detected_or_harmless() -> None:
    _run(_flip, SOAK_FLIPS, "flips")
    _run(_other, SOAK_OTHERS, "other damages")

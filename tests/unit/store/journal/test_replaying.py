"""What is recorded of a store makes its directory again, elsewhere and after cleaning."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.errors import StoreError
from harebell.base.osfs import OsFiles
from harebell.base.ports import write_all
from harebell.kernels.records import crc32c
from harebell.store.definitions import open_definitions
from harebell.store.journal.changes import SNAPSHOT, WRITE, Change, decode, encode
from harebell.store.journal.pieces import DEFINITIONS, PIECE_BYTES, LivePieces
from harebell.store.journal.recording import Journal, RecordedDefinitions, RecordedFiles
from harebell.store.journal.replaying import Replica
from harebell.store.memory_files import MemoryFiles
from harebell.wire.v09.fields import decode_table, encode_table

PATHS = ("queues/a/1.seg", "queues/a/2.seg", "queues/b/1.seg", "quarantine/a.bin")
FIELDS = {"kind": "classic", "identity": "0" * 32, "auto_delete": False, "arguments": {}}
"""Of a queue."""
Step = tuple[str, str, int, int]


def steps() -> st.SearchStrategy[list[Step]]:
    """Return steps: what is done, to which file, at which offset or size, with which byte."""
    words = st.sampled_from(["write", "write", "write", "truncate", "remove", "rename", "clean"])
    offsets = st.sampled_from([0, 1, 100, PIECE_BYTES - 1, PIECE_BYTES, 3 * PIECE_BYTES])
    one = st.tuples(words, st.sampled_from(PATHS), offsets, st.integers(1, 255))
    return st.lists(one, max_size=25)


class Model:
    """A recorded directory, with a log in generations."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.journal = Journal()
        self.recorded = RecordedFiles(self.files, self.journal)
        self.pieces = LivePieces()
        self.log: dict[int, list[bytes]] = {1: []}

    @property
    def generation(self) -> int:
        return max(self.log)

    def append(self, changes: list[Change]) -> None:
        self.log[self.generation].append(encode(changes))
        for change in changes:
            self.pieces.note(change, self.generation)

    def do(self, step: Step) -> None:
        word, path, number, byte = step
        if word == "write":
            self.recorded.make_directory(path.rpartition("/")[0])
            file = self.recorded.open(path, create=True)
            start = min(number, file.size())
            write_all(file, bytes([byte]) * (100 + number % 7), start)
        elif word == "clean":
            self._clean(number % len(self.log))
        elif path in self.contents():
            if word == "truncate":
                file = self.recorded.open(path)
                file.truncate(min(number, file.size()))
            elif word == "remove":
                self.recorded.remove(path)
            else:
                self.recorded.rename(path, path.replace(".", "-new."))
        self.append(self.journal.take())

    def _clean(self, at: int) -> None:
        victim = sorted(self.log)[at]
        self.log[self.generation + 1] = []
        for path, number in sorted(self.pieces.of(victim)):
            file = self.files.open(path)
            data = file.read_at(self.pieces.byte_count((path, number)), number * PIECE_BYTES)
            self.append([Change(WRITE, number * PIECE_BYTES, path, data)])
            self.pieces.whole((path, number), self.generation)
        self.append([self.pieces.alive()])
        del self.log[victim]
        self.pieces.forget(victim)

    def contents(self) -> dict[str, bytes]:
        return contents_of(self.files)


def contents_of(files: MemoryFiles) -> dict[str, bytes]:
    found = {}
    for directory in ("queues/a", "queues/b", "quarantine"):
        for name in files.names(directory):
            file = files.open(f"{directory}/{name}")
            found[f"{directory}/{name}"] = file.read_at(file.size(), 0)
    return found


@given(steps())
@settings(deadline=None)
def test_a_log_that_was_cleaned_anywhere_makes_the_same_directory(done: list[Step]) -> None:
    model = Model()
    for step in done:
        model.do(step)
    again = MemoryFiles()
    replica = Replica("/", again)
    for _, rows in sorted(model.log.items()):
        for row in rows:
            replica.replay(decode(row, "row"))
    replica.close()
    assert contents_of(again) == model.contents()
    assert model.pieces.total_bytes() == sum(map(len, model.contents().values()))


def _definitions(directory: Path, journal: Journal) -> RecordedDefinitions:
    def decoded(data: bytes) -> Any:
        return decode_table(data)[0]

    files = OsFiles(str(directory))
    return RecordedDefinitions(
        open_definitions(str(directory), files, encode_table, decoded), journal
    )


def _names(definitions: RecordedDefinitions) -> list[tuple[str, ...]]:
    return [key for key, _ in definitions.load("queue")]


def test_definitions_follow_a_snapshot_and_the_changes_after_it(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    journal = Journal()
    definitions = _definitions(there, journal)

    def put(name: str) -> None:
        definitions.put("queue", ("/", name), FIELDS)
        definitions.write(definitions.take())

    put("before")
    journal.take()
    journal.add(definitions.snapshot())
    put("b")
    put("a")
    definitions.drop("queue", ("/", "b"))
    definitions.write(definitions.take())
    put("b")
    definitions.mark(clean=True)
    replica = Replica(str(here), OsFiles(str(here)))
    replica.replay(journal.take())
    replica.close()
    again = _definitions(here, Journal())
    assert _names(again) == _names(definitions) == [("/", "before"), ("/", "a"), ("/", "b")]
    assert again.was_clean


def test_changes_of_definitions_before_the_first_snapshot_that_is_left_are_skipped(
    tmp_path: Path,
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    journal = Journal()
    definitions = _definitions(there, journal)
    # The snapshot that these followed was in a generation that was removed.
    definitions.put("queue", ("/", "q"), FIELDS)
    definitions.write(definitions.take())
    definitions.mark(clean=True)
    early = journal.take()
    journal.add(definitions.snapshot())
    definitions.mark(clean=False)
    replica = Replica(str(here), OsFiles(str(here)))
    replica.replay(early)
    with pytest.raises(StoreError, match="the log has no definitions"):
        replica.check()
    replica.replay(journal.take())
    replica.check()
    replica.close()
    again = _definitions(here, Journal())
    assert _names(again) == [("/", "q")]
    assert not again.was_clean


def test_changes_that_do_not_fit_an_old_snapshot_wait_for_the_next(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    old = sqlite3.connect(tmp_path / "old")
    old.execute("CREATE TABLE of_another_version (x)")
    old.commit()
    old.close()
    journal = Journal()
    definitions = _definitions(there, journal)
    definitions.put("queue", ("/", "q"), FIELDS)
    definitions.write(definitions.take())
    # The image that these were made in was removed before the one of an older version was.
    early = [Change(SNAPSHOT, 0, "", (tmp_path / "old").read_bytes()), *journal.take()]
    replica = Replica(str(here), OsFiles(str(here)))
    replica.replay([*early, Change(WRITE, 0, "queues/a/1.seg", b"abc")])
    with pytest.raises(StoreError, match="cannot write"):
        replica.check()
    replica.replay([definitions.snapshot()])
    replica.check()
    replica.close()
    assert _names(_definitions(here, Journal())) == [("/", "q")]
    assert (here / "queues" / "a" / "1.seg").read_bytes() == b"abc"


def _replayed(directory: Path, log: dict[int, list[list[Change]]]) -> list[tuple[str, ...]]:
    """Replay a log in an empty directory; returns the queues."""
    directory.mkdir()
    replica = Replica(str(directory), OsFiles(str(directory)))
    for _, rows in sorted(log.items()):
        for row in rows:
            replica.replay(row)
    replica.check()
    replica.close()
    return sorted(_names(_definitions(directory, Journal())))


@pytest.mark.parametrize("seed", range(12))
def test_definitions_survive_owners_and_generations_in_any_order(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    there = tmp_path / "there"
    there.mkdir()
    journal, pieces = Journal(), LivePieces()
    definitions = _definitions(there, journal)
    log: dict[int, list[list[Change]]] = {1: []}

    def append(changes: list[Change]) -> None:
        log[max(log)].append(changes)
        for change in changes:
            pieces.note(change, max(log))

    append([*journal.take(), definitions.snapshot()])
    for number in range(30):
        act = rng.choice(["put", "put", "end", "own", "clean"])
        if act == "put":
            definitions.put("queue", ("/", f"q{number}"), FIELDS)
            definitions.write(definitions.take())
            append(journal.take())
        elif act == "end":
            log[max(log) + 1] = []
        elif act == "own":
            # The owner ends in good order, and the next one begins.
            definitions.mark(clean=True)
            append(journal.take())
            definitions.mark(clean=False)
            append([*journal.take(), definitions.snapshot()])
        elif len(log) > 1:
            victim = rng.choice(sorted(log)[:-1])
            if pieces.of(victim):
                append([definitions.snapshot()])
            del log[victim]
            pieces.forget(victim)
        assert _replayed(tmp_path / str(number), log) == sorted(_names(definitions))


def test_a_snapshot_frees_all_earlier_generations_of_definitions() -> None:
    pieces = LivePieces()
    pieces.note(Change(SNAPSHOT, 0, "", b"abc"), 1)
    pieces.note(Change(SNAPSHOT, 0, "", b"abcd"), 2)
    assert pieces.of(1) == set()
    assert pieces.of(2) == {DEFINITIONS}
    assert pieces.total_bytes() == 4


@pytest.mark.parametrize("name", ["redo", "transient/a/1.seg", "stages/1", "inventory"])
def test_records_that_only_this_machine_needs_are_not_recorded(name: str) -> None:
    journal = Journal()
    files = RecordedFiles(MemoryFiles(), journal)
    files.make_directory(name.rpartition("/")[0] or "x")
    file = files.open(name, create=True)
    write_all(file, b"abc", 0)
    file.truncate(0)
    files.remove(name)
    assert journal.take() == []


def _flipped(row: bytes) -> bytes:
    return row[:-1] + bytes([row[-1] ^ 1])


def _newer(row: bytes) -> bytes:
    """A row of another format, as it was written."""
    return b"\x03\0\0\0" + crc32c(b"other").to_bytes(4, "little") + b"other"


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (_flipped, "row 7 is damaged"),
        (lambda row: row[:5], "row 7 is damaged"),
        (lambda row: b"\x02" + row[1:], "row 7 is damaged"),
        (_newer, "row 7 has format 3, and this version of Harebell reads 1"),
    ],
)
def test_a_row_that_is_not_what_was_written_is_refused(
    spoil: Callable[[bytes], bytes], complaint: str
) -> None:
    row = encode([Change(WRITE, 8, "queues/a/1.seg", b"abc")])
    assert list(decode(row, "row 7")) == [Change(WRITE, 8, "queues/a/1.seg", b"abc")]
    with pytest.raises(StoreError, match=complaint):
        decode(spoil(row), "row 7")


def test_changes_of_definitions_without_a_database_are_an_error_not_a_new_one(
    tmp_path: Path,
) -> None:
    journal = Journal()
    definitions = _definitions(tmp_path, journal)
    definitions.mark(clean=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    replica = Replica(str(empty), OsFiles(str(empty)))
    replica.replay(journal.take())
    with pytest.raises(StoreError, match="the log has no definitions"):
        replica.check()
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(f"file:{empty}/definitions.sqlite?mode=ro", uri=True)

"""The log of a store: what is appended is read, after every way in which a commit can go wrong."""

from __future__ import annotations

import errno
import os
import random
import select
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from harebell.base.osfs import OsFiles
from harebell.base.ports import write_all
from harebell.cluster.postgresql import fenced_log_writer
from harebell.cluster.postgresql.database import Database
from harebell.cluster.postgresql.fenced_log_writer import FencedLogWriter
from harebell.cluster.postgresql.log_reader import DamagedRow, LogReader
from harebell.cluster.postgresql.ownership import Deposed, Ownership, claim, now, read_store
from harebell.cluster.postgresql.prepared_statement import PreparedStatement
from harebell.cluster.postgresql.tables import Tables
from harebell.store.journal.changes import SNAPSHOT, Change
from harebell.store.journal.recording import Journal, RecordedFiles
from harebell.store.journal.replaying import Replica
from tests.patience import SECONDS, eventually
from tests.postgresql.servers import PostgresServer

LEASE_MS = 20_000
DELETE_THIRD = "DELETE FROM harebell.log_0000000001 WHERE number = 3"


class Owner:
    """An owner of a store, without a broker.

    Args:
        directory: empty; gets the cache.
        url: the database.
        node: the name of the owner.
    """

    def __init__(self, directory: Path, url: str, node: str = "one") -> None:
        directory.mkdir()
        self.directory = directory
        self.files = OsFiles(str(directory))
        self.said: list[str] = []
        self.database = Database(url, "harebell", LEASE_MS, node, "fsync")
        self.tables = Tables("harebell")
        with self.database.connect() as link:
            self.tables.make(link)
            replica = Replica(str(directory), self.files)
            self.damaged: list[DamagedRow] = []
            reader = LogReader(self.tables, replica, self.damaged.append)
            reader.follow(link)
            began = now()
            epoch = claim(link, self.tables, read_store(link, self.tables), self.database)
            assert epoch is not None
            self.ownership = Ownership(self.database, self.tables, epoch, began, "1", self._report)
            self.writer = FencedLogWriter(
                self.database, self.tables, self.ownership, reader, self._report
            )
            self.writer.attach(self.files, lambda: Change(SNAPSHOT, 0, "", b""))
            self.writer.begin(reader, link)
            replica.close()
        self.journal = Journal()
        self.recorded = RecordedFiles(self.files, self.journal)

    def _report(self, level: str, line: str) -> None:
        self.said.append(f"{level}: {line}")

    def write(self, path: str, data: bytes, offset: int = 0) -> None:
        self.recorded.make_directory(path.rpartition("/")[0])
        file = self.recorded.open(path, create=True)
        write_all(file, data, offset)
        file.close()

    def commit(self) -> None:
        self.writer.append(self.journal.take())

    def send(self) -> bool | None:
        """Commit as the event loop does: False if the writer has to find out in a thread."""
        descriptor = self.writer.send(self.journal.take())
        if descriptor < 0:
            return None
        while True:
            assert select.select([descriptor], [], [], SECONDS)[0]
            committed = self.writer.answered()
            if committed is not None:
                return committed

    def contents(self) -> dict[str, bytes]:
        found = {}
        for directory, _, names in os.walk(self.directory):
            for name in names:
                path = Path(directory) / name
                found[str(path.relative_to(self.directory))] = path.read_bytes()
        return found

    def end(self) -> None:
        self.writer.close()
        self.ownership.end(release=True)


@pytest.fixture
def url(postgresql: PostgresServer, database: str) -> str:
    return postgresql.url(database)


@pytest.fixture
def owner(tmp_path: Path, url: str) -> Iterator[Owner]:
    made = Owner(tmp_path / "one", url)
    yield made
    made.end()


def _again(tmp_path: Path, url: str) -> dict[str, bytes]:
    """Return the files that another owner finds."""
    other = Owner(tmp_path / "again", url, "again")
    other.end()
    return other.contents()


def test_committed_records_are_found_by_the_next_owner(
    owner: Owner, tmp_path: Path, url: str
) -> None:
    owner.write("queues/a/1.seg", b"first")
    owner.commit()
    owner.write("queues/a/1.seg", b"second", 5)
    owner.write("queues/b/1.seg", b"other")
    owner.commit()
    owner.recorded.remove("queues/b/1.seg")
    owner.commit()
    owner.write("queues/a/2.seg", b"never committed")
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"firstsecond"}


def _of_bytes(rng: random.Random, size: int) -> bytes:
    """Bytes that cannot be compressed."""
    return rng.randbytes(size)


def _of_words(rng: random.Random, size: int) -> bytes:
    """Bytes as of JSON, which get half as many."""
    words = [b"%06d," % rng.randrange(1_000_000) for _ in range(size // 20 + 1)]
    return b'"order number":'.join(words)[:size]


def _of_both(rng: random.Random, size: int) -> bytes:
    return rng.choice((_of_bytes, _of_words))(rng, size)


@pytest.mark.parametrize("contents", [_of_bytes, _of_words, _of_both])
def test_the_log_is_cleaned_while_it_grows_and_says_the_same(
    owner: Owner,
    tmp_path: Path,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    contents: Callable[[random.Random, int], bytes],
) -> None:
    monkeypatch.setattr(fenced_log_writer, "GENERATION_BYTES", 100_000)
    monkeypatch.setattr(fenced_log_writer, "DEAD_MAX_BYTES", 300_000)
    rng = random.Random(7)
    for number in range(400):
        path = f"queues/a/{number:04}.seg"
        owner.write(path, contents(rng, 9_000))
        if number >= 20 and number % 10:
            owner.recorded.remove(f"queues/a/{number - 20:04}.seg")
        owner.commit()
        owner.writer.clean()
    with owner.database.connect() as link:
        generations = owner.tables.generations(link)
        stored = sum(
            int(
                link.execute(
                    "SELECT pg_total_relation_size(%s)", (f"harebell.log_{each:010}",)
                ).fetchone()[0]
            )  # type: ignore[index]
            for each in generations
        )
    live = sum(map(len, owner.contents().values()))
    if contents is _of_words:
        live //= 2
    assert generations[0] > 1
    assert len(generations) < generations[-1] / 2
    assert stored < live * 1.5 + 900_000
    assert _again(tmp_path, url) == owner.contents()


def test_rows_are_compressed_and_the_next_owner_reads_them(
    owner: Owner, tmp_path: Path, url: str
) -> None:
    for number in range(10):
        owner.write("queues/a/1.seg", b"%04d" % number * 10_000, 40_000 * number)
        owner.commit()
    figures = owner.writer.figures()
    assert figures["log_written_bytes"] < 10_000
    assert figures["log_bytes"] == figures["log_written_bytes"]
    assert figures["log_dead_bytes"] < 100
    assert _again(tmp_path, url) == owner.contents()


def test_a_damaged_row_is_named_and_the_others_are_read(
    owner: Owner, tmp_path: Path, url: str
) -> None:
    owner.write("queues/a/1.seg", random.Random(1).randbytes(100_000))
    owner.commit()
    owner.write("queues/b/1.seg", b"other")
    owner.commit()
    changed = "set_byte(content, 60, 255 - get_byte(content, 60))"
    damage = f"UPDATE harebell.log_0000000001 SET content = {changed} WHERE"
    with psycopg.connect(url) as link:
        link.execute(f"{damage} number = 2".encode())
    other = Owner(tmp_path / "again", url, "again")
    other.end()
    assert [row.number for row in other.damaged] == [2]
    assert "row 2 of the log is damaged" in other.damaged[0].text
    assert "queues/a/1.seg" in other.damaged[0].text
    assert other.contents()["queues/b/1.seg"] == b"other"


def test_an_end_of_a_generation_that_is_missing_does_not_end_the_log(
    owner: Owner, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fenced_log_writer, "GENERATION_BYTES", 1_000)
    for number in range(3):
        owner.write(f"queues/{number}/1.seg", random.Random(number).randbytes(2_000))
        owner.commit()
        owner.writer.clean()
    wanted = owner.contents()
    with psycopg.connect(url) as link:
        link.execute(
            "DELETE FROM harebell.log_0000000001 WHERE number ="
            " (SELECT max(number) FROM harebell.log_0000000001)"
        )
    other = Owner(tmp_path / "again", url, "again")
    other.end()
    assert other.contents() == wanted
    assert ["generation 1" in row.text for row in other.damaged] == [True]


def test_a_session_that_holds_parts_of_the_log_stops_neither_commits_nor_cleaning(
    owner: Owner, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pg_dump does for as long as it takes, which may be hours."""
    monkeypatch.setattr(fenced_log_writer, "GENERATION_BYTES", 50_000)
    monkeypatch.setattr(fenced_log_writer, "DEAD_MAX_BYTES", 100_000)
    monkeypatch.setattr(fenced_log_writer, "_DROP_SECONDS", 0.0)
    made = 0

    def work(commits: int, meanwhile: Callable[[], object] = lambda: None) -> None:
        nonlocal made
        for _ in range(commits):
            meanwhile()
            owner.write(f"queues/a/{made:04}.seg", random.Random(made).randbytes(8_000))
            if made >= 5:
                owner.recorded.remove(f"queues/a/{made - 5:04}.seg")
            made += 1
            owner.commit()
            if owner.writer.needs_cleaning():
                owner.writer.clean()

    def generations() -> list[int]:
        with owner.database.connect() as link:
            return owner.tables.generations(link)

    work(60)
    with psycopg.connect(url) as dump:
        # Whoever waits for it does so for ever, but for this.
        dump.execute("SET idle_in_transaction_session_timeout = '20s'")
        held = generations()
        for each in held:
            dump.execute(f"LOCK TABLE harebell.log_{each:010} IN ACCESS SHARE MODE".encode())
        # It stays for as long as nobody waits for it.
        work(200, meanwhile=lambda: dump.execute("SELECT 1"))
        assert set(held) <= set(generations())
        assert len(generations()) < len(held) + 12, "what came later was not removed"
    assert len([line for line in owner.said if "such as pg_dump" in line]) == 1
    assert not [line for line in owner.said if "warning" in line]
    work(1)
    assert len(generations()) < 12
    assert not set(held) & set(generations())
    assert _again(tmp_path, url) == owner.contents()


def test_an_owner_that_was_deposed_commits_nothing(owner: Owner, tmp_path: Path, url: str) -> None:
    owner.write("queues/a/1.seg", b"mine")
    owner.commit()
    other = Owner(tmp_path / "two", url, "two")
    owner.write("queues/a/1.seg", b"late")
    with pytest.raises(Deposed, match="another broker has claimed it"):
        owner.commit()
    assert not owner.ownership.holds()
    other.write("queues/a/1.seg", b"next")
    other.commit()
    other.end()
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"next"}


def test_a_deposed_owner_whose_epoch_is_not_checked_still_meets_a_taken_number(
    owner: Owner, url: str
) -> None:
    """The number alone keeps the row of an old owner out, whatever the statement saw."""
    with psycopg.connect(url, autocommit=True) as link:
        newest = link.execute("SELECT max(number) FROM harebell.log_0000000001").fetchone()
        assert newest is not None
        link.execute("INSERT INTO harebell.log_0000000001 VALUES (%s, 99, 'x')", (newest[0] + 1,))
    owner.write("queues/a/1.seg", b"mine")
    with pytest.raises(Deposed):
        owner.commit()


def test_a_lost_connection_is_made_again_and_the_commit_is_there_once(
    owner: Owner, postgresql: PostgresServer, tmp_path: Path, url: str
) -> None:
    for number in range(20):
        owner.write("queues/a/1.seg", b"%04d" % number, 4 * number)
        if number % 4 == 0:
            postgresql.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'harebell%'"
            )
        owner.commit()
    assert any("cannot commit, and try again" in line for line in owner.said)
    assert _again(tmp_path, url) == {
        "queues/a/1.seg": b"".join(b"%04d" % number for number in range(20))
    }


class Hasty(FencedLogWriter):
    """A writer whose connection breaks after the server has committed, before it has said so."""

    breaks = True

    def _insert_once(self, link: psycopg.Connection[object], contents: list[bytes]) -> None:
        super()._insert_once(link, contents)
        if self.breaks:
            self.breaks = False
            raise psycopg.OperationalError("the answer was lost")


def test_a_commit_whose_answer_was_lost_is_read_back_and_not_made_twice(
    owner: Owner, tmp_path: Path, url: str
) -> None:
    owner.writer.__class__ = Hasty
    owner.write("queues/a/1.seg", b"once")
    owner.commit()
    owner.write("queues/a/1.seg", b"more", 4)
    owner.commit()
    with psycopg.connect(url) as link:
        rows = link.execute("SELECT number FROM harebell.log_0000000001 ORDER BY 1").fetchall()
    assert [number for (number,) in rows] == [1, 2, 3]
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"oncemore"}


def test_a_server_that_has_lost_commits_deposes_the_owner(
    owner: Owner, postgresql: PostgresServer, tmp_path: Path, url: str
) -> None:
    owner.write("queues/a/1.seg", b"kept")
    owner.commit()
    owner.write("queues/a/1.seg", b"lost")
    owner.commit()
    postgresql.execute(DELETE_THIRD, url.rpartition("/")[2])
    owner.writer.close()
    owner.write("queues/a/1.seg", b"next")
    with pytest.raises(Deposed, match="has lost confirmed commits"):
        owner.commit()
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"kept"}


def test_a_commit_with_a_warning_counts_when_a_further_one_has_succeeded(
    owner: Owner, postgresql: PostgresServer, tmp_path: Path, url: str
) -> None:
    """As when the wait for a standby was cancelled: the commit may be on one server only."""
    database = url.rpartition("/")[2]
    owner.write("queues/a/1.seg", b"first")
    owner.commit()
    (writer,) = _backends(url, "INSERT INTO%")
    for statement in (
        "CREATE TABLE renewals AS SELECT 0 AS pid",
        "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE WARNING 'on this server only'; RETURN new; END $$",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$ BEGIN INSERT INTO public.renewals VALUES (pg_backend_pid()); RETURN new; END $$",
        "CREATE TRIGGER warns BEFORE INSERT ON harebell.log_0000000001"
        " FOR EACH ROW EXECUTE FUNCTION warn()",
        "CREATE TRIGGER notes BEFORE UPDATE ON harebell.store FOR EACH ROW EXECUTE FUNCTION note()",
    ):
        postgresql.execute(statement, database)
    owner.write("queues/a/1.seg", b"second", 5)
    owner.commit()
    assert "warning: PostgreSQL warns: on this server only" in owner.said
    # The lease has a connection of its own, so this was the commit that came after the row.
    found = postgresql.execute(f"SELECT count(*) FROM renewals WHERE pid = {writer}", database)
    assert found == [(1,)]
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"firstsecond"}


def test_a_lease_is_renewed_whatever_is_read_after_it(
    owner: Owner, postgresql: PostgresServer, url: str
) -> None:
    database = url.rpartition("/")[2]
    waits = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND query LIKE 'UPDATE %store%'"
    )
    with postgresql.connect(database) as later, later.transaction():
        with postgresql.connect(database) as first, first.transaction():
            first.execute("SELECT FROM harebell.store FOR UPDATE")
            assert eventually(lambda: postgresql.execute(waits, database))
            later.execute("LOCK TABLE harebell.node IN SHARE MODE")
            before = owner.ownership.ends_at
        # The renewal goes on, and what comes after it, which is for people, does not.
        assert eventually(lambda: owner.ownership.ends_at > before)


def _backends(url: str, statement: str) -> list[int]:
    """Return the processes of a database whose last statement is like this one."""
    with psycopg.connect(url) as link:
        rows = link.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND query LIKE %s",
            (statement,),
        )
        return [pid for (pid,) in rows]


def test_a_large_commit_is_several_rows_that_are_there_together(
    owner: Owner, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fenced_log_writer, "_ROW_BYTES", 1_000)
    for number in range(10):
        owner.write("queues/a/1.seg", bytes([number]) * 900, 900 * number)
    owner.commit()
    assert owner.writer.rows == 11
    assert _again(tmp_path, url) == owner.contents()


def test_a_row_that_is_missing_is_named_and_leaves_a_hole(
    owner: Owner, postgresql: PostgresServer, tmp_path: Path, url: str
) -> None:
    for number in range(4):
        owner.write("queues/a/1.seg", b"%d" % number, number)
        owner.commit()
    postgresql.execute(DELETE_THIRD, url.rpartition("/")[2])
    other = Owner(tmp_path / "again", url, "again")
    other.end()
    assert other.contents() == {"queues/a/1.seg": b"0\x0023"}
    assert ["row 3 of the log is missing" in row.text for row in other.damaged] == [True]


@pytest.mark.parametrize("kind", [psycopg.errors.DiskFull, psycopg.OperationalError])
def test_a_server_without_room_stalls_the_commit_which_succeeds_later(
    kind: type[psycopg.Error],
    owner: Owner,
    tmp_path: Path,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inserts = FencedLogWriter._insert_once

    def full(writer: FencedLogWriter, link: object, contents: list[bytes]) -> None:
        raise kind("could not extend file: No space left on device")

    monkeypatch.setattr(FencedLogWriter, "_insert_once", full)
    owner.write("queues/a/1.seg", b"first")
    with pytest.raises(OSError, match="No space left") as caught:
        owner.commit()
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.setattr(FencedLogWriter, "_insert_once", inserts)
    owner.write("queues/a/1.seg", b"second", 5)
    owner.commit()
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"firstsecond"}


# --- commits that the event loop sends ------------------------------------------------------------


@pytest.fixture
def sending(owner: Owner) -> Owner:
    """An owner that has committed once, so its connection and its statement are there."""
    owner.write("queues/a/1.seg", b"first")
    owner.commit()
    return owner


def _numbers(url: str) -> list[int]:
    with psycopg.connect(url) as link:
        rows = link.execute("SELECT number FROM harebell.log_0000000001 ORDER BY 1").fetchall()
    return [number for (number,) in rows]


def test_small_commits_are_sent_without_waiting_and_found_by_the_next_owner(
    sending: Owner, tmp_path: Path, url: str
) -> None:
    for number in range(20):
        sending.write("queues/a/1.seg", b"%04d" % number, 5 + 4 * number)
        assert sending.send() is True
    assert _numbers(url) == list(range(1, 23))
    assert _again(tmp_path, url) == sending.contents()


def test_a_large_commit_is_kept_for_the_thread(sending: Owner, tmp_path: Path, url: str) -> None:
    sending.write("queues/a/1.seg", b"x" * 100_000, 5)
    assert sending.send() is None
    assert _numbers(url) == [1, 2]
    sending.commit()
    assert _again(tmp_path, url) == sending.contents()


def test_a_commit_that_was_sent_and_whose_answer_was_lost_is_there_once(
    sending: Owner, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = PreparedStatement.received

    def lost(statement: PreparedStatement) -> int | None:
        if received(statement) is None:
            return None
        raise psycopg.OperationalError("the answer was lost")

    monkeypatch.setattr(PreparedStatement, "received", lost)
    sending.write("queues/a/1.seg", b"once", 5)
    assert sending.send() is False
    # What comes until it is known is not in that row.
    sending.write("queues/a/1.seg", b"more", 9)
    sending.commit()
    assert _numbers(url) == [1, 2, 3, 4]
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"firstoncemore"}


def test_a_commit_that_was_sent_into_a_lost_connection_is_made_by_the_thread(
    sending: Owner, postgresql: PostgresServer, tmp_path: Path, url: str
) -> None:
    postgresql.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name LIKE 'harebell%'"
    )
    sending.write("queues/a/1.seg", b"second", 5)
    assert not sending.send()
    sending.commit()
    sending.write("queues/a/1.seg", b"third", 11)
    assert sending.send() is True
    assert _numbers(url) == [1, 2, 3, 4]
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"firstsecondthird"}


def test_a_deposed_owner_that_sends_commits_nothing(
    sending: Owner, tmp_path: Path, url: str
) -> None:
    other = Owner(tmp_path / "two", url, "two")
    sending.write("queues/a/1.seg", b"late", 5)
    assert sending.send() is False
    with pytest.raises(Deposed, match="another broker has claimed it"):
        sending.commit()
    other.end()
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"first"}


def test_a_number_that_is_taken_stops_a_commit_that_was_sent(sending: Owner, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as link:
        link.execute("INSERT INTO harebell.log_0000000001 VALUES (3, 99, 'x')")
    sending.write("queues/a/1.seg", b"mine", 5)
    assert sending.send() is False
    with pytest.raises(Deposed):
        sending.commit()


def test_a_warning_about_a_commit_that_was_sent_leaves_its_outcome_open(
    sending: Owner, postgresql: PostgresServer, tmp_path: Path, url: str
) -> None:
    """As when the wait for a standby was cancelled: the commit may be on one server only."""
    database = url.rpartition("/")[2]
    postgresql.execute(
        "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE WARNING 'on this server only'; RETURN new; END $$",
        database,
    )
    postgresql.execute(
        "CREATE TRIGGER warns BEFORE INSERT ON harebell.log_0000000001"
        " FOR EACH ROW EXECUTE FUNCTION warn()",
        database,
    )
    sending.write("queues/a/1.seg", b"second", 5)
    assert sending.send() is False
    assert "warning: PostgreSQL warns: on this server only" in sending.said
    sending.commit()
    assert _numbers(url) == [1, 2, 3]
    assert _again(tmp_path, url) == {"queues/a/1.seg": b"firstsecond"}


def test_the_loop_goes_on_sending_after_the_thread_has_ended_a_generation(
    sending: Owner, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fenced_log_writer, "GENERATION_BYTES", 30_000)
    monkeypatch.setattr(fenced_log_writer, "DEAD_MAX_BYTES", 30_000)
    sent = 0
    for number in range(100):
        sending.write("queues/a/1.seg", bytes([number]) * 2_000)
        if sending.send():
            sent += 1
        else:
            sending.commit()
        if sending.writer.needs_cleaning():
            sending.writer.clean()
    assert sent > 80
    assert not [line for line in sending.said if "warning" in line]
    with sending.database.connect() as link:
        generations = sending.tables.generations(link)
    assert generations[-1] > 5
    assert len(generations) < 4
    assert _again(tmp_path, url) == sending.contents()

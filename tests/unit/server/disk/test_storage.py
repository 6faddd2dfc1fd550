"""The data directory of a broker: opened once, and closed in good order or not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from harebell.base.durability import parse_durability
from harebell.base.errors import StoreError
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.config import Config
from harebell.model.settings.metadata import Metadata
from harebell.server.disk.storage import Storage, free_limit
from harebell.server.time_source import MachineTime

QUEUE = {"kind": "classic", "identity": "", "auto_delete": False, "arguments": {}}


class Opened:
    """A storage on a directory, and what it reported."""

    def __init__(self, directory: Path, **keys: Any) -> None:
        self.lines: list[tuple[str, str]] = []
        config = Config(data_dir=directory, **keys)
        self.storage = Storage(
            config, Gauge(), lambda level, text: self.lines.append((level, text))
        )
        self.storage.begin()

    def commit(self) -> None:
        while (batch := self.storage.store.commit.gather()) is not None:
            batch.perform()
            assert batch.failed is None, batch.failed
            self.storage.after_batch()
            self.storage.store.commit.finish(batch)

    def close(self) -> None:
        self.storage.store.close()
        self.commit()
        self.storage.end()

    def vanish(self) -> None:
        """What is left when the process is killed: only the lock goes."""
        self.storage.definitions._link.close()
        self.storage._lock.release()


def fill(opened: Opened, count: int) -> str:
    """A queue's log with so many messages."""
    store = opened.storage.store
    identity = store.new_identity()
    store.definitions.put("queue", ("/", "q"), {**QUEUE, "identity": identity})
    log = store.open_log(identity, durable=True)
    for number in range(count):
        log.append(Message("", "q", Properties(b"\0\0", 2), b"%d" % number))
    opened.commit()
    return identity


@pytest.mark.parametrize("durability", ["fsync", "interval", "os"])
@pytest.mark.parametrize("end", ["close", "vanish"])
def test_committed_records_are_there_again(durability: str, end: str, tmp_path: Path) -> None:
    before = Opened(tmp_path / "d", durability=durability)
    identity = fill(before, 10)
    getattr(before, end)()
    after = Opened(tmp_path / "d", durability=durability)
    assert after.storage.definitions.was_clean == (end == "close")
    log = after.storage.store.open_log(identity, durable=True)
    assert log.live() == 10
    found = log.read(3)
    assert found is not None
    assert found.body == b"3"
    assert [level for level, _ in after.lines if level == "error"] == []
    after.close()


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    first = Opened(tmp_path / "d")
    with pytest.raises(StoreError, match="another broker runs on the data directory"):
        Opened(tmp_path / "d")
    first.close()
    Opened(tmp_path / "d").close()


def test_a_start_that_fails_leaves_the_directory_free(tmp_path: Path) -> None:
    (tmp_path / "definitions.sqlite").write_bytes(b"x" * 5000)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"definitions\.sqlite is damaged"):
            Opened(tmp_path)


@pytest.mark.parametrize(("durability", "warned"), [("fsync", 0), ("interval", 1), ("os", 1)])
def test_less_durability_is_said_at_the_start(durability: str, warned: int, tmp_path: Path) -> None:
    opened = Opened(tmp_path, durability=durability, durability_interval_ms=70)
    assert len(opened.lines) == warned
    for level, text in opened.lines:
        assert level == "warning"
        assert f"durability is '{durability}'" in text
    assert opened.storage.overview()["durability"] == durability
    opened.close()


def test_syncs_are_put_off_for_an_interval(tmp_path: Path) -> None:
    opened = Opened(tmp_path, durability="interval", durability_interval_ms=60_000)
    assert opened.storage.sync_in() is not None, "the directory itself was made"
    opened.storage.files.sync_owed(60_000)
    assert opened.storage.sync_in() is None
    fill(opened, 1)
    wait = opened.storage.sync_in()
    assert wait is not None
    assert 50 < wait <= 60
    opened.storage.after_batch()
    assert opened.storage.files.owed() == [60_000]
    opened.storage._began -= 61
    assert opened.storage.sync_in() == 0
    opened.storage.after_batch()
    assert opened.storage.files.owed() == []
    opened.close()


def test_a_disk_with_less_room_than_wanted_is_low(tmp_path: Path) -> None:
    opened = Opened(tmp_path, disk_free_limit=0)
    assert not opened.storage.low()
    opened.storage.free_limit = opened.storage.free + 10**15
    assert opened.storage.low()
    opened.close()


def test_a_directory_that_is_gone_has_no_room(tmp_path: Path) -> None:
    opened = Opened(tmp_path / "d")
    (tmp_path / "d").rename(tmp_path / "elsewhere")
    assert opened.storage.low()
    assert opened.storage.free == 0
    (tmp_path / "elsewhere").rename(tmp_path / "d")
    assert not opened.storage.low()
    opened.close()


def test_the_sizes_of_segments_are_the_configured_ones(tmp_path: Path) -> None:
    opened = Opened(tmp_path, segment_bytes=65_536, stream_segment_bytes=131_072)
    assert opened.storage.store.stream_segment_bytes == 131_072
    identity = fill(opened, 3_000)
    assert len(opened.storage.files.names(f"queues/{identity}")) > 1
    opened.close()


def test_the_room_to_keep_free_is_a_share_or_a_size() -> None:
    assert free_limit(0.25, 1000) == 250
    assert free_limit(1.0, 1000) == 1000
    assert free_limit(300, 1000) == 300


def test_the_time_of_day_is_in_milliseconds() -> None:
    assert 1_600_000_000_000 < MachineTime().wall_ms() < 10_000_000_000_000


def test_each_durability_has_its_own_interval(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    store, storage = opened.storage.store, opened.storage
    for identity, word in (("a" * 32, "interval:20"), ("b" * 32, "interval:60000")):
        log = store.open_log(identity, durable=True)
        store.set_durability(identity, parse_durability(word))
        log.append(Message("", "q", Properties(b"\0\0", 2), b"m"))
    batch = store.commit.gather()
    assert batch is not None
    batch.perform()
    store.commit.finish(batch)
    assert sorted(storage.files.owed()) == [20, 60_000]
    wait = storage.sync_in()
    assert wait is not None
    assert wait <= 0.02
    storage._began -= 0.03
    storage.after_batch()
    assert storage.files.owed() == [60_000]
    store.set_durability("b" * 32, None)
    assert storage.sync_in() == 0
    storage.after_batch()
    assert storage.files.owed() == [60_000], "the directory was synced, and will be again"
    storage.end()


def test_definitions_are_synced_as_soon_as_one_queue_is(tmp_path: Path) -> None:
    opened = Opened(tmp_path, durability="os")
    store, link = opened.storage.store, opened.storage.definitions._link
    store.set_durability("a" * 32, parse_durability("interval:20"))
    store.definitions.put("vhost", ("v",), Metadata().row())
    opened.commit()
    assert link.execute("PRAGMA synchronous").fetchone() == (1,)
    store.set_durability("b" * 32, parse_durability("fsync"))
    store.definitions.put("vhost", ("w",), Metadata().row())
    opened.commit()
    assert link.execute("PRAGMA synchronous").fetchone() == (2,)
    opened.close()


def test_the_time_that_counts_for_what_is_due_only_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(Config(data_dir=tmp_path), Gauge(), lambda level, text: None)
    try:
        clock = storage.wall
        begun = clock.steady
        assert begun == clock.ms
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 86_400)
        clock.read()
        assert clock.ms - begun >= 86_400_000
        assert 0 <= clock.steady - begun < 3_600_000
        monkeypatch.setattr(time, "time", lambda: real() - 86_400)
        before = clock.steady
        clock.read()
        assert clock.ms < begun
        assert clock.steady >= before
    finally:
        storage.end()

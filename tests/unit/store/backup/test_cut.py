"""A cut has every log as it was when it began, whatever happens until it is noted."""

from __future__ import annotations

from harebell.base.ports import Log
from harebell.kernels.limits import LARGE_RECORD_BYTES
from harebell.store.backup.cut import Cut
from harebell.store.limits import CUT_LOGS
from tests.unit.store.stores import Bench, message

LOGS = 3 * CUT_LOGS


def _cut(bench: Bench) -> tuple[Cut, list[str]]:
    store = bench.store
    kept: list[str] = []
    logs = [*store.logs.values(), *store.commit.dirty]
    store.commit.cut = Cut(store.commit.done, logs, kept.append)
    return store.commit.cut, kept


def _noted(bench: Bench) -> dict[str, int]:
    """Note everything that is left; the lengths."""
    cut = bench.store.commit.cut
    assert cut is not None
    while not cut.note_some():
        pass
    bench.store.commit.cut = None
    return dict(cut.segments)


def _on_disk(bench: Bench) -> dict[str, int]:
    """The records that the disk has."""
    found = {}
    for directory in bench.disk.names("queues"):
        for name in bench.disk.names(f"queues/{directory}"):
            path = f"queues/{directory}/{name}"
            found[path] = bench.disk.open(path).size()
    return found


def _bench(count: int = LOGS) -> tuple[Bench, list[Log]]:
    """Logs with a message each, which is committed."""
    bench = Bench(ahead_from=1 << 30)
    logs = [bench.store.open_log(bench.store.new_identity(), durable=True) for _ in range(count)]
    for log in logs:
        log.append(message())
    bench.commit()
    return bench, logs


def test_a_log_that_changes_is_noted_before_its_batch_is_written() -> None:
    bench, logs = _bench()
    before = _on_disk(bench)
    cut, kept = _cut(bench)
    assert not cut.note_some()
    for log in logs:
        log.append(message(b"later"))
    bench.commit()
    assert _on_disk(bench) != before
    assert _noted(bench) == before
    assert sorted(kept) == sorted(before)


def test_a_log_that_begins_later_is_not_in_a_cut() -> None:
    bench, _ = _bench()
    before = _on_disk(bench)
    _cut(bench)
    bench.store.open_log(bench.store.new_identity(), durable=True).append(message())
    bench.commit()
    assert _noted(bench) == before


def test_records_removed_and_not_committed_are_in_a_cut() -> None:
    bench, logs = _bench(4)
    emptied, deleted, *_ = logs
    for _ in range(30):
        emptied.append(message(bytes(200)))
    bench.commit()
    before = _on_disk(bench)
    for position in range(emptied.end()):
        emptied.settle(position)
    deleted.delete()
    _cut(bench)
    assert _noted(bench) == before
    bench.commit()
    assert len(_on_disk(bench)) < len(before) - 1


def test_a_large_message_that_is_not_written_is_not_in_a_cut() -> None:
    bench, logs = _bench(1)
    before = _on_disk(bench)
    logs[0].append(message(bytes(LARGE_RECORD_BYTES)))
    _cut(bench)
    assert _noted(bench) == before


def test_a_cut_waits_for_the_end_of_a_batch() -> None:
    bench, logs = _bench(1)
    commit = bench.store.commit
    said: list[int] = []
    commit.between(lambda: said.append(commit.done))
    assert said == [commit.done]
    logs[0].append(message())
    batch = commit.gather()
    assert batch is not None
    commit.between(lambda: said.append(commit.done))
    assert len(said) == 1
    batch.perform()
    commit.finish(batch)
    assert said[1:] == [batch.ticket]

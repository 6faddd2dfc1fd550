"""What readers keep of what they read: all of them together have a limit."""

from __future__ import annotations

from harebell.store.log.block_cache import BlockCache
from tests.unit.store.stores import Bench, message


def _logs(bench: Bench, count: int, body: bytes) -> list:  # type: ignore[type-arg]
    """Logs with three messages each, on disk."""
    logs = [bench.store.open_log(f"{number:032x}", durable=True) for number in range(count)]
    for log in logs:
        for number in range(3):
            log.append(message(b"%d" % number + body))
    bench.commit()
    return logs


def test_blocks_that_all_logs_keep_in_memory_have_a_limit() -> None:
    bench = Bench(segment_bytes=1 << 30)
    bench.store.handles.blocks = loaded = BlockCache(100_000)
    logs = _logs(bench, 20, bytes(9_000))
    for number in range(3):
        for log in logs:
            assert log.read(number).body == b"%d" % number + bytes(9_000)
            assert 0 < loaded.byte_count <= 100_000
    for log in logs:
        log.delete()
    assert loaded.byte_count == 0


def test_a_message_larger_than_the_limit_is_kept_alone() -> None:
    bench = Bench(segment_bytes=1 << 30)
    bench.store.handles.blocks = loaded = BlockCache(10_000)
    logs = _logs(bench, 4, bytes(50_000))
    for log in logs:
        assert log.read(0).body == b"0" + bytes(50_000)
        assert 50_000 < loaded.byte_count < 100_000

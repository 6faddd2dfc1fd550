"""A sync that fails is never confirmed: the broker says so and ends, and its successor goes on."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import pytest

from harebell.base.limits import SYNC_TOGETHER_FILES
from harebell.server.disk.syncfs import whole_sync
from harebell.wire.v09 import methods as m
from tests.patience import SECONDS
from tests.robustness import strace
from tests.robustness.lives import kill, life
from tests.robustness.load import Load
from tests.robustness.swift import Envelope, Link, body_of
from tests.running import DidNotStart

EXIT_CODE = 74


def _failing_at(directory: Path) -> tuple[str, int]:
    """The call that syncs a commit over many queues in a directory, and the one that fails."""
    whole = whole_sync(str(directory))
    if whole is None:
        return "fdatasync", 60
    whole.close()
    return "syncfs", 3


_CALL = re.compile(r"^(\d+) +(fdatasync|fsync)\((\d+)(?:</\S+>)?\) += (\S+)", re.MULTILINE)


@pytest.mark.parametrize(("call", "number"), [("fdatasync", 25), ("fdatasync", 60), ("fsync", 4)])
def test_nothing_of_a_failed_sync_is_confirmed(tmp_path: Path, call: str, number: int) -> None:
    trace = tmp_path / "trace"
    command = strace.log_to(strace.fail_at(call, "EIO", number), trace)
    load = Load(number)
    # Small segments, for a new one syncs directories.
    with life(tmp_path / "data", "--segment-bytes", "65536", prefix=command) as broker:
        load.declare(broker.port)
        load.run(broker.port, time.monotonic() + SECONDS, lambda: kill(broker))
        code = broker.process.wait(SECONDS)
        assert code == EXIT_CODE, broker.log
        (line,) = (each for each in broker.log.splitlines() if "[error]" in each.lower())
        assert "Input/output error" in line
        assert str(tmp_path / "data") in line or "definitions.sqlite" in line
        assert "Traceback" not in broker.log
    calls = Counter(result for _, _, _, result in _CALL.findall(trace.read_text()))
    assert calls["-1"] >= 1
    with life(tmp_path / "data") as broker:
        load.declare(broker.port)
        load.drain(broker.port)
        assert broker.stop() == 0


def test_a_failed_sync_is_not_tried_again(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    command = strace.log_to(strace.fail_at("fdatasync", "EIO", 20, for_ever=False), trace)
    load = Load(20)
    with life(tmp_path / "data", prefix=command) as broker:
        load.declare(broker.port)
        load.run(broker.port, time.monotonic() + SECONDS, lambda: kill(broker))
        assert broker.process.wait(SECONDS) == EXIT_CODE
    failed = [call for call in _CALL.findall(trace.read_text()) if call[3] == "-1"]
    assert len(failed) == 1
    after = trace.read_text().partition("(INJECTED)")[2]
    assert not _CALL.search(after), "something was synced after a sync had failed"
    with life(tmp_path / "data") as broker:
        load.declare(broker.port)
        load.drain(broker.port)


def test_nothing_of_a_failed_sync_of_many_queues_is_confirmed(tmp_path: Path) -> None:
    queues = [f"q{number}" for number in range(SYNC_TOGETHER_FILES)]
    call, number = _failing_at(tmp_path)
    command = strace.fail_at(call, "EIO", number)
    confirmed = [0]
    with life(tmp_path / "data", prefix=command) as broker:
        link = Link(broker.port)
        for queue in queues:
            link.ask(m.QueueDeclare(queue=queue, durable=True), m.QueueDeclareOk)
        link.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
        link.on_ack = lambda _channel, tag, _multiple, _refused: confirmed.append(tag)
        rounds = 0
        while link.alive:
            rounds += 1
            bodies = [body_of(rounds, queue.encode()) for queue in queues]
            pairs = zip(queues, bodies, strict=True)
            link.send(b"".join(Envelope(queue).around(body) for queue, body in pairs))
            while link.alive and max(confirmed) < rounds * len(queues):
                link.read()
        assert broker.process.wait(SECONDS) == EXIT_CODE, broker.log
        assert "Input/output error" in broker.log
    assert max(confirmed) < rounds * len(queues), "the last sync failed"
    with life(tmp_path / "data") as broker:
        link = Link(broker.port)
        for tag, queue in enumerate(queues, 1):
            asked = m.QueueDeclare(queue=queue, passive=True)
            answer = link.ask(asked, m.QueueDeclareOk)
            assert isinstance(answer, m.QueueDeclareOk)
            mine = len(range(tag, max(confirmed) + 1, len(queues)))
            assert answer.message_count >= mine, f"{queue}: what was confirmed is gone"
        link.goodbye()


def test_a_sync_that_fails_at_the_start_ends_it_with_a_sentence(tmp_path: Path) -> None:
    command = strace.fail_at("fdatasync", "EIO", 1)
    with pytest.raises(DidNotStart) as caught, life(tmp_path / "data", prefix=command):
        pass
    assert caught.value.code == 1
    assert "Error: cannot use " in str(caught.value)
    assert "definitions.sqlite" in str(caught.value)
    assert "Traceback" not in str(caught.value)

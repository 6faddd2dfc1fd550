"""The benchmark itself: it runs, its figures are sane, and it fails when messages go missing."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest

from bench.__main__ import EVERYTHING
from bench.brokers import Harebell
from bench.load import Consumer, Job
from bench.measure import play
from bench.peer import BenchError
from bench.scenarios import (
    BACKLOG,
    FAN_IN,
    HEARTBEATS,
    IDLE,
    OPENING,
    OPENING_ALONE,
    OPENINGS,
    RESTART,
    RESTART_MORE,
    SCENARIOS,
    START,
    START_HTTP,
    TOPICS,
)
from tests.bench.runs import ran


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return ran("bench", *arguments)


@pytest.mark.timeout(1_200)
def test_a_short_run_of_everything_counts_and_writes_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    short = ("--runs", "1", "--seconds", "0.2", "--messages", "5000")
    done = bench("--brokers", "harebell,floor", *short, "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "nothing was lost, doubled or out of order" in " ".join(done.stdout.split())
    medians = json.loads(file.read_bytes())["medians"]
    found = {each["scenario"]: each for each in medians if each["broker"] == "harebell"}
    assert set(found) == set(EVERYTHING)
    floor = {each["scenario"]: each for each in medians if each["broker"] == "floor"}
    relayed = {
        name
        for name, each in SCENARIOS.items()
        if each.version == "0-9-1" and not each.received_in and not each.apart
    }
    assert set(floor) == {*relayed, OPENING_ALONE, OPENING, FAN_IN}
    assert all(each["messages"] > 0 for each in floor.values())
    for name in SCENARIOS:
        assert found[name]["messages"] > 0
        assert found[name]["us_per_message"] >= 0
        assert found[name]["resident_mib"] > 1
    assert found["g5k"]["p50_us"] <= found["g5k"]["p99_us"]
    assert found["d10"]["messages"] % 10 == 0
    assert found["s3"]["messages"] % 3 == 0
    for name in ("c128w", "c1kw"):
        assert found[name]["disk_share"] > 0
    for name in ("us_in", "us_out", "messages_per_second", "resident_mib", "peak_mib"):
        assert found[BACKLOG][name] >= 0
    assert found[BACKLOG]["messages"] == found[RESTART]["messages"] == 5000
    assert found[RESTART_MORE]["messages"] == 25_000
    assert found[RESTART]["start_seconds"] > 0
    for name in OPENINGS:
        assert found[name]["us_per_message"] > 0
    assert found[TOPICS]["messages"] > 0
    assert "kib_per_binding" in found[TOPICS]
    assert found[FAN_IN]["messages"] > 0
    assert found[HEARTBEATS]["messages"] == 50
    for name in (START, START_HTTP, IDLE):
        assert found[name]["start_seconds"] > 0
    assert found[START]["stop_seconds"] > 0
    assert found[IDLE]["resident_mib"] > 5


def test_other_logs_give_back_each_message_in_order(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    loads = ("--only", "a128,c1,c1k", "--runs", "1", "--seconds", "0.2")
    done = bench("--brokers", "redis,nats", *loads, "--json", str(file))
    assert done.returncode == 0, done.stderr
    medians = json.loads(file.read_bytes())["medians"]
    played = {(each["broker"], each["scenario"]) for each in medians if each["messages"] > 0}
    assert played == {(name, load) for name in ("redis", "nats") for load in ("c1", "c1k")}


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        (("--only", "a127"), "there is no scenario 'a127': did you mean 'a128'?"),
        (("--brokers", "rabbit"), "there is no broker 'rabbit': did you mean 'rabbitmq'?"),
    ],
)
def test_a_wrong_name_gets_the_nearest_right_one(flag: tuple[str, str], words: str) -> None:
    done = bench(*flag)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())


@pytest.fixture
def consumer(tmp_path: Path) -> Consumer:
    """A consumer that has started, on a broker of its own."""
    broker = Harebell()
    try:
        progress = tmp_path / "progress"
        progress.write_bytes(bytes(8))
        made = Consumer(Job(broker.port, SCENARIOS["a16"], 1.0, str(progress)))
        made.prepare()
        yield made
        made.peer.socket.close()
    finally:
        broker.stop()


def body(number: int, extra: int = 0) -> bytes:
    return struct.pack(">QQ", number, extra)


def test_losses_duplicates_disorder_and_damage_end_a_run(consumer: Consumer) -> None:
    queue = SCENARIOS["a16"].queue_names[0]
    last = 2**64 - 1
    consumer.delivered(queue, 1, body(0))
    for wrong, words in (
        (body(0), "expected message 1, got 0"),
        (body(2), "expected message 1, got 2"),
        (body(1) + b"x", "message 1 has 17 bytes"),
        (body(last, 2), "2 were sent, 1 received"),
    ):
        with pytest.raises(BenchError, match=words):
            consumer.delivered(queue, 2, wrong)
    consumer.delivered(queue, 2, body(last, 1))
    assert consumer.finished == 1


def test_a_broker_that_is_not_there_ends_a_run() -> None:
    broker = Harebell()
    broker.stop()
    with pytest.raises(BenchError, match="harebell a16: "):
        play(broker, SCENARIOS["a16"], 0.1)

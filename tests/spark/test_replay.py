"""`harebell pipeline replay --checkpoint`: original times, and each message once over kills."""

from __future__ import annotations

import os
import signal
import subprocess
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from harebell.client.url import URL
from harebell.pipeline.builtin.pinned_table import pinned
from harebell.pipeline.builtin.replaying import Choice
from harebell.pipeline.builtin.replaying_once import open_replay, replay_once
from harebell.pipeline.errors import PipelineError
from tests.patience import eventually
from tests.running import asked, command, environment, running_broker
from tests.spark.asking import taken

pytestmark = pytest.mark.timeout(1_200)
TIME = datetime(2026, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)
SENT = datetime(2025, 12, 24, 18, 0, 0, tzinfo=UTC)


def archived(first: int, last: int, queue: str) -> pa.Table:
    """Rows as `archive` stores them."""
    numbers = range(first, last)
    return pa.table(
        {
            "value": [b"%d" % number for number in numbers],
            "routing_key": [queue for _ in numbers],
            "queue": ["orders" for _ in numbers],
            "offset": pa.array(numbers, pa.int64()),
            "timestamp": [TIME for _ in numbers],
            "properties": pa.array(
                [
                    {"message_id": f"m{number}", "timestamp": SENT if number % 2 else None}
                    for number in numbers
                ],
                pa.struct([("message_id", pa.string()), ("timestamp", pa.timestamp("us", "UTC"))]),
            ),
            "headers": pa.array(
                [[("region", "eu")] for _ in numbers], pa.map_(pa.string(), pa.string())
            ),
        }
    )


def test_a_replay_keeps_times_keys_and_headers_and_publishes_nothing_twice(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    lake, checkpoint = tmp_path / "lake", tmp_path / "replay"
    write_deltalake(str(lake), archived(0, 10, queue))
    url = URL.parse(broker_url)

    def run(choice: Choice) -> tuple[int, int]:
        replay = open_replay(checkpoint, lambda: pinned(lake), choice, "", None, 4.0)
        return replay_once(spark, replay, url, 0.0, lambda _count: None)

    assert run(Choice("offset < 9")) == (9, 0)
    # Rows that come later are not a part of this replay.
    write_deltalake(str(lake), archived(3, 5, queue), mode="append")
    assert run(Choice("offset < 9")) == (0, 9)
    with pytest.raises(PipelineError, match="has a replay of other rows or to another exchange"):
        run(Choice("offset < 8"))
    found = taken(channel, queue)
    assert [body for _, _, body in found] == [b"%d" % number for number in range(9)]
    properties = found[4][1]
    assert properties.message_id == "m4"
    assert properties.timestamp == int(TIME.timestamp())
    assert found[5][1].timestamp == int(SENT.timestamp())
    assert properties.headers.pop("x-replayed-at").startswith("20")
    assert properties.headers == {
        "region": "eu",
        "x-original-timestamp": "2026-01-31T12:00:00.123456Z",
        "x-original-queue": "orders",
        "x-original-offset": "4",
    }


def test_a_replay_that_cannot_be_published_leaves_nothing_and_goes_on_later(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(archived(0, 10, "no.such.queue"), lake / "a.parquet")
    url = URL.parse(broker_url)
    replay = open_replay(tmp_path / "replay", lambda: pinned(lake), Choice(), "", None, 5.0)
    with pytest.raises(PipelineError, match="the same command goes on where this one ended"):
        replay_once(spark, replay, url, 0.0, lambda _count: None)
    channel.queue_declare("no.such.queue")
    assert replay_once(spark, replay, url, 0.0, lambda _count: None) == (10, 0)
    assert len(taken(channel, "no.such.queue")) == 10
    channel.queue_delete("no.such.queue")
    (lake / "a.parquet").rename(lake / "b.parquet")
    with pytest.raises(PipelineError, match="is gone since the replay began"):
        replay_once(spark, replay, url, 0.0, lambda _count: None)


def test_a_replay_that_fails_leaves_nothing_staged(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(archived(0, 10, "no.such.queue"), lake / "a.parquet")
    replay = open_replay(tmp_path / "replay", lambda: pinned(lake), Choice(), "no.such", None, 0.0)
    with running_broker() as broker:
        url = URL.parse(broker.address() + "/%2F")
        with pytest.raises(PipelineError, match=r"no exchange 'no\.such'"):
            replay_once(spark, replay, url, 0.0, lambda _count: None)
        listed = asked(broker, "stages", "list", "--json")
        assert (listed.returncode, listed.stdout.strip()) == (0, "[]")


def test_a_replay_that_is_killed_goes_on_and_each_message_is_published_once(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for part in range(3):
        pq.write_table(archived(part * 500, part * 500 + 500, queue), lake / f"{part}.parquet")
    words = [command(), "pipeline", "replay", "lake", "--checkpoint", "state", "--rate", "100"]

    def start() -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as log:
            return subprocess.Popen(
                [*words, "--url", broker_url],
                env=environment({}),
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def waiting() -> int:
        return int(channel.queue_declare(queue, passive=True).method.message_count)

    def reached(minimum: int, running: subprocess.Popen[bytes]) -> bool:
        return waiting() > minimum or running.poll() is not None

    for minimum in (200, 600):
        running = start()
        assert eventually(partial(reached, minimum, running), 300)
        assert running.poll() is None, (tmp_path / "log").read_text()
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert start().wait(400) == 0, (tmp_path / "log").read_text()
    assert "were there before" in (tmp_path / "log").read_text()
    assert [int(body) for _, _, body in taken(channel, queue)] == list(range(1500))

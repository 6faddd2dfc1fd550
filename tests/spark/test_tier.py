"""`harebell lake tier`: a stream in Parquet files, complete over kills, before retention acts."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from harebell.client import blocking
from harebell.spark.reading.errors import SourceError
from harebell.spark.source import QueueSource
from tests.patience import eventually
from tests.ports import free_port
from tests.robustness.lives import forget, life, snapshot
from tests.running import command, environment
from tests.spark.asking import BODIES
from tests.spark.conftest import PATIENT

pytestmark = pytest.mark.timeout(900)
SEGMENT = 65_536
BODY = b"x" * 500


class Stream:
    """A stream with small segments, and its tier.

    Args:
        url: the broker.
        name: of the stream.
        directory: for the tier.
        tier: the argument x-tier; "" for none.
    """

    def __init__(self, url: str, name: str, directory: Path, tier: str) -> None:
        self.url = url
        self.name = name
        self.directory = directory
        self.place = directory / "tier"
        self.sent = 0
        arguments = {
            "x-queue-type": "stream",
            "x-max-length-bytes": 2 * SEGMENT,
            "x-stream-max-segment-size-bytes": SEGMENT,
        }
        with blocking.connect(url) as connection:
            channel = connection.channel()
            channel.delete_queue(name)
            channel.declare_queue(
                name, durable=True, arguments=arguments | ({"x-tier": tier} if tier else {})
            )

    def publish(self, count: int) -> None:
        bodies = [b"%d " % number + BODY for number in range(self.sent, self.sent + count)]
        with blocking.connect(self.url) as connection:
            connection.channel().publish_many(
                bodies, routing_key=self.name, headers={"region": "eu"}
            )
        self.sent += count

    def first(self) -> int:
        """The first offset that the stream still has."""
        with blocking.connect(self.url) as connection:
            return connection.channel().span(self.name).first

    def is_settled(self) -> bool:
        """True if retention has removed nothing for several of its rounds.

        The broker answers in between: where it stands still for a round, that is one of many.
        """
        before = self.first()
        return all(_after_a_moment(self.first) == before for _ in range(40))

    def job(self, *flags: str) -> subprocess.Popen[str]:
        words = [command(), "lake", "tier", self.name, "--to", "tier", "--url", self.url, *flags]
        return subprocess.Popen(
            words,
            env=environment({}),
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *flags: str) -> tuple[int, str]:
        job = self.job(*flags)
        output, _ = job.communicate(timeout=300)
        return job.returncode, output

    def tiered(self) -> list[int]:
        """The offsets in the files, in their order."""
        files = sorted(self.place.glob("part-*.parquet"))
        return [offset for file in files for offset in pq.read_table(file)["offset"].to_pylist()]


def _after_a_moment(found: Callable[[], int]) -> int:
    time.sleep(0.1)
    return found()


@pytest.fixture
def stream(broker_url: str, queue: str, tmp_path: Path) -> Iterator[Stream]:
    return Stream(broker_url, queue, tmp_path, "tier")


def test_retention_waits_for_the_tier_and_spark_reads_it_without_the_broker(
    stream: Stream, spark: SparkSession
) -> None:
    stream.publish(1_000)
    time.sleep(2)
    assert stream.first() == 0
    code, output = stream.run()
    assert (code, output.splitlines()[-1]) == (
        0,
        f"1000 messages of stream '{stream.name}' copied; the tier has 1000",
    )
    stream.publish(200)
    assert eventually(lambda: stream.first() > 0, 60)
    assert stream.first() <= 1_000
    assert stream.run()[0] == 0
    assert stream.tiered() == list(range(1_200))
    rows = spark.read.parquet(str(stream.place)).orderBy("offset").collect()
    assert [int(row["value"].split()[0]) for row in rows] == list(range(1_200))
    assert rows[7]["headers"] == {"region": "eu"}
    assert rows[7]["routing_key"] == rows[7]["queue"] == stream.name
    assert rows[7]["timestamp"] is not None


def test_a_job_that_is_killed_leaves_whole_files_and_the_next_one_goes_on(stream: Stream) -> None:
    for _ in range(4):
        stream.publish(2_000)
        job = stream.job("--file-bytes", "100000")
        time.sleep(random.uniform(1.0, 5.0))
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
        assert stream.tiered() == list(range(len(stream.tiered())))
    # The broker notices after a while that the connection of the last one is gone.
    assert eventually(lambda: stream.run("--file-bytes", "100000")[0] == 0, 120)
    assert stream.tiered() == list(range(8_000))
    assert not list((stream.place / "_tier").glob("*.parquet"))


def test_a_fault_of_a_tier_is_one_sentence_and_the_stream_keeps_its_messages(
    stream: Stream, broker_url: str, tmp_path: Path
) -> None:
    stream.publish(500)
    for place, said in (
        ("/proc/tier", "the tier /proc/tier cannot be used: "),
        ("s4://bucket/x", "the tier s4://bucket/x cannot be used: "),
    ):
        code, output = stream.run("--to", place)
        assert code == 1
        assert said in output
        assert output.count("\n") == 1
    assert stream.first() == 0
    assert stream.run()[0] == 0
    (file,) = stream.place.glob("part-*.parquet")
    whole = file.read_bytes()
    file.write_bytes(whole[:-9] + b"damaged!!")
    code, output = stream.run()
    assert code == 1
    assert "is not what was written to it: its checksum differs" in output
    file.write_bytes(whole)
    stream.publish(10)
    with stream.job("--every", "1s") as running:
        assert running.stdout is not None
        assert "10 messages from offset 500" in running.stdout.readline()
        assert "another job copies" in stream.run()[1]
        running.kill()
    again = Stream(broker_url, stream.name, tmp_path, "")
    again.publish(10)
    assert eventually(lambda: "an earlier stream" in again.run()[1], 60)


def test_messages_that_went_before_the_tier_had_them_are_told(
    broker_url: str, queue: str, tmp_path: Path
) -> None:
    stream = Stream(broker_url, queue, tmp_path, "")
    stream.publish(100)
    assert stream.run()[0] == 0
    stream.publish(2_000)
    assert eventually(lambda: stream.first() > 100 and stream.is_settled(), 60)
    code, output = stream.run()
    assert code == 1
    assert f"the messages 100 to {stream.first() - 1} of the stream {queue} went before" in output
    assert stream.run("--accept-gap")[0] == 0
    assert stream.tiered() == [*range(100), *range(stream.first(), 2_100)]
    # An empty place, such as that of a disk that is not mounted, is not taken for a new tier.
    stream.place.rename(stream.directory / "unmounted")
    code, output = stream.run()
    assert code == 1
    assert "there is no tier in " in output
    assert f"the messages 0 to {stream.first() - 1} of the stream {queue} are gone" in output
    assert not list(stream.place.glob("part-*"))


def test_a_query_reads_the_tier_and_then_the_broker_as_one_stream(
    stream: Stream, spark: SparkSession, tmp_path: Path, broker_url: str
) -> None:
    # Messages that the broker reads at once have the same time.
    stream.publish(500)
    time.sleep(0.01)
    stream.publish(500)
    assert stream.run("--file-bytes", "100000")[0] == 0
    stream.publish(200)
    assert eventually(lambda: stream.first() > 0, 60)
    options = PATIENT | {"url": broker_url, "queue": stream.name, "tier": str(stream.place)}
    where = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "350"}
    schema = "value BINARY, offset BIGINT, headers MAP<STRING, STRING>, "
    schema += "properties STRUCT<delivery_mode: INT, type: STRING>"

    def streamed(table: str) -> list[int]:
        """Run a query to its end; its bodies so far, in the order of their offsets."""
        source = spark.readStream.format("harebell").options(**options, **where)
        writer = source.schema(schema).load().writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / table))
        assert query.awaitTermination(240)
        rows = spark.read.parquet(str(tmp_path / table)).orderBy("offset").collect()
        assert {row["headers"]["region"] for row in rows} == {"eu"}
        assert {row["properties"]["type"] for row in rows} == {None}
        return [int(row["value"].split()[0]) for row in rows]

    assert streamed("rows") == list(range(1_200))
    stream.publish(50)
    assert streamed("rows") == list(range(1_250))
    batch = spark.read.format("harebell").options(**options, startingOffsets="700").load()
    assert batch.count() == 550
    begin = batch.where("offset = 900").first()
    assert begin is not None
    since = str(int(begin["timestamp"].timestamp() * 1_000))
    timed = spark.read.format("harebell").options(**options, startingTimestamp=since).load()
    assert 0 < timed.agg({"offset": "min"}).collect()[0][0] <= 900


def test_a_tier_that_is_ahead_of_a_restored_stream_is_told_and_not_mixed_with_it(
    tmp_path: Path,
) -> None:
    home, copy = tmp_path / "data", tmp_path / "copy"
    port = ("--port", str(free_port()))
    with life(home, *port) as broker:
        stream = Stream(broker.address(), "events", tmp_path, "tier")
        stream.publish(30)
        assert stream.run()[0] == 0
        stream.publish(10)
        broker.stop()
    snapshot(home, copy)
    with life(home, *port):
        stream.publish(50)
        assert "60 messages from offset 30" in stream.run()[1]
    forget(home, copy)
    told = "the offsets from 40 on to other messages"
    given = PATIENT | {"url": stream.url, "queue": "events", "tier": str(stream.place)}
    given |= {"startingOffsets": "earliest"}
    reader = QueueSource(given).reader(BODIES)
    with life(home, *port):
        stream.sent = 1_000
        for fresh in (0, 20, 90):
            # Once the broker is before the end of the tier, then behind it.
            stream.publish(fresh)
            code, output = stream.run()
            assert (code, output.count("\n")) == (1, 1), output
            assert told in output
            with pytest.raises(SourceError, match=told):
                reader.partitions()
        _, second = sorted(stream.place.glob("part-*.parquet"))
        second.rename(tmp_path / second.name)
        expected = [*range(40), *range(1_000, 1_110)]
        assert _bodies(reader) == expected
        code, output = stream.run()
        assert code == 0, output
        assert "120 messages from offset 30" in output
        assert _bodies(reader) == expected
    # Starts that lose nothing are no reason to say anything.
    for _ in range(2):
        with life(home, *port):
            stream.publish(5)
            assert stream.run()[0] == 0
            assert _bodies(reader) == [*range(40), *range(1_000, stream.sent)]


def _bodies(reader: Any) -> list[int]:
    rows = [row for part in reader.partitions() for row in reader.read(part)]
    return [int(body.split()[0]) for batch in rows for body in batch["value"].to_pylist()]


@pytest.mark.parametrize("place", ["in the tier", "in the stream"])
def test_messages_moved_to_the_tier_while_a_task_reads_are_read_from_there(
    stream: Stream, broker_url: str, place: str
) -> None:
    stream.publish(1_000)
    assert stream.run()[0] == 0
    stream.publish(1_000)
    given = PATIENT | {"url": broker_url, "queue": stream.name, "tier": str(stream.place)}
    given |= {"startingOffsets": "earliest", "minPartitions": "1", "rowsPerBatch": "10"}
    reader = QueueSource(given).reader(BODIES)
    (part,) = reader.partitions()
    task = iter(reader.read(part))
    found: list[int] = []
    while not found or (place == "in the stream" and found[-1] < 1_000):
        found += next(task)["offset"].to_pylist()
    assert stream.run()[0] == 0
    assert eventually(lambda: stream.first() > found[-1] + 500)
    for batch in task:
        found += batch["offset"].to_pylist()
    assert found == list(range(2_000))


def test_a_fault_of_the_option_tier_is_named(
    stream: Stream, spark: SparkSession, broker_url: str, tmp_path: Path
) -> None:
    stream.publish(10)
    options = {"url": broker_url, "queue": stream.name}
    for wrong, said in (
        ({"tier": str(tmp_path / "none")}, "there is no tier at"),
        ({"tier": "x", "where": "properties.type = 'a'"}, "tier and where exclude each other"),
        ({"teir": "x"}, "did you mean tier?"),
    ):
        source = spark.read.format("harebell").options(**options, **wrong)
        with pytest.raises(Exception, match=said.replace("?", "[?]")):
            source.load().count()
    assert stream.run()[0] == 0
    with blocking.connect(broker_url) as connection:
        channel = connection.channel()
        channel.delete_queue(stream.name)
        channel.declare_queue(stream.name, durable=True)
        channel.publish(b"x", routing_key=stream.name)
        source = spark.read.format("harebell").options(**options, tier=str(stream.place))
        with pytest.raises(Exception, match="the option tier belongs to streams"):
            source.load().count()

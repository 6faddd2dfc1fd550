"""A broker whose data directory was restored from a copy, and queries that had gone on since."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pika
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from harebell.client import blocking
from harebell.spark.reading.data_loss_policy import DataLoss
from harebell.spark.reading.errors import SourceError
from harebell.spark.source import QueueSource
from harebell.testing import Checkpoint, StreamCalls
from harebell.testing.stream_calls import read_rows
from tests.ports import free_port
from tests.robustness.lives import forget, kill, snapshot
from tests.running import RunningBroker
from tests.spark.asking import BODIES, waiting
from tests.spark.conftest import PATIENT
from tests.spark.parquet_lake import Lake

Offset = dict[str, Any]
CLASSIC: dict[str, Any] = {}
PRIORITY = {"x-max-priority": 5}
STREAM = {"x-queue-type": "stream"}
QUEUE = "daily"


class Site:
    """A data directory, the broker on it, and the checkpoint of a query that reads it daily.

    Args:
        directory: where both are.
        arguments: of the queue.
        options: of the query, beside the address.
    """

    def __init__(self, directory: Path, arguments: dict[str, Any], **options: str) -> None:
        self.home = directory / "data"
        self.copy = directory / "copy"
        self.port = free_port()
        self.arguments = arguments
        self.options = {"startingOffsets": "earliest"} | options
        self.checkpoint = Checkpoint()
        self.got: list[int] = []

    @contextmanager
    def day(self, *, killed: bool = False) -> Iterator[Any]:
        """A life of the broker: a channel to it."""
        self.home.mkdir(exist_ok=True)
        with RunningBroker("--data-dir", str(self.home), "--port", str(self.port)) as broker:
            self.url = broker.address() + "/%2F"
            connection = pika.BlockingConnection(pika.URLParameters(f"{self.url}?heartbeat=0"))
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare(QUEUE, durable=True, arguments=self.arguments)
            yield channel
            if killed:
                kill(broker)
            else:
                connection.close()

    def query(self, limit: int = 1_000, *, tolerant: bool = False) -> StreamCalls:
        """A new process of the query."""
        loss = {"failOnDataLoss": "false" if tolerant else "true"}
        options = PATIENT | {"url": self.url, "queue": QUEUE, "longPollMs": "0"} | loss
        options |= {"maxOffsetsPerTrigger": str(limit)} | self.options
        return StreamCalls(
            lambda: QueueSource(options).streamReader(BODIES), checkpoint=self.checkpoint
        )

    def run(
        self, limit: int = 1_000, *, tolerant: bool = False, batches: int = 100, plan: bool = False
    ) -> list[list[int]]:
        """Run the query until it has nothing to read, as AvailableNow does; return its batches.

        Args:
            limit: rows of a batch.
            tolerant: whether `failOnDataLoss` is false.
            batches: how many at most.
            plan: whether one more is planned at the end, which Spark does not commit.
        """
        query = self.query(limit, tolerant=tolerant)
        found: list[list[int]] = []
        try:
            while len(found) < batches and (rows := query.batch()) is not None:
                found.append(numbers(rows))
            if plan:
                assert query.plan()
                query.read()
        finally:
            query.stop()
        self.got += [number for batch in found for number in batch]
        return found

    def last(self) -> Offset:
        """The last offset of the checkpoint."""
        offsets = self.checkpoint.offsets
        found: Offset = offsets[max(offsets)][QUEUE]
        return found


def publish(channel: Any, queue: str, first: int, end: int) -> None:
    """Publish numbers that survive a kill of the broker."""
    for number in range(first, end):
        channel.basic_publish("", queue, b"%d" % number, pika.BasicProperties(delivery_mode=2))


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    """The numbers that the bodies are."""
    return [int(row["value"]) for row in rows]


def _flat(batches: list[list[int]]) -> list[int]:
    return sorted(number for batch in batches for number in batch)


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    return Site(tmp_path, getattr(request, "param", CLASSIC))


@pytest.mark.parametrize("site", [STREAM], indirect=True, ids=["stream"])
@pytest.mark.parametrize("ahead", [0, 1, 400])
@pytest.mark.parametrize("fresh", [0, 50, 500])
def test_positions_of_a_restored_stream_that_other_messages_took_are_told_and_read(
    site: Site, ahead: int, fresh: int, caplog: pytest.LogCaptureFixture
) -> None:
    with site.day() as channel:
        publish(channel, QUEUE, 0, 30)
        assert _flat(site.run()) == list(range(30))
    snapshot(site.home, site.copy)
    with site.day() as channel:
        publish(channel, QUEUE, 30, 30 + ahead)
        assert len(_flat(site.run())) == ahead
    forget(site.home, site.copy)
    with site.day() as channel:
        publish(channel, QUEUE, 1_000, 1_000 + fresh)
        if ahead:
            with pytest.raises(DataLoss) as caught:
                site.run()
            assert f"{ahead} positions that were read are lost" in str(caught.value)
            assert f"{min(ahead, fresh)} of them belong to other messages" in str(caught.value)
            assert f"{fresh} messages from 30 on" in str(caught.value)
        with caplog.at_level(logging.WARNING, "harebell.spark"):
            assert _flat(site.run(tolerant=True)) == list(range(1_000, 1_000 + fresh))
        assert bool(caplog.text) == bool(ahead), caplog.text
    with site.day() as channel:
        publish(channel, QUEUE, 2_000, 2_010)
        # Without new messages the checkpoint could not go on from the end of the copy.
        found = site.run(tolerant=not fresh)
        assert _flat(found) == list(range(2_000, 2_010))


@pytest.mark.parametrize("site", [CLASSIC, PRIORITY], indirect=True, ids=["classic", "priority"])
def test_a_claim_that_was_planned_before_a_restore_comes_again_as_another_one(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with site.day() as channel:
        publish(channel, QUEUE, 0, 20)
        site.run(10)
    snapshot(site.home, site.copy)
    with site.day() as channel:
        publish(channel, QUEUE, 20, 40)
        site.run(10, batches=1, plan=True)
    forget(site.home, site.copy)
    planned = site.last()
    with site.day() as channel:
        publish(channel, QUEUE, 500, 530)
        with pytest.raises(DataLoss, match="claim 4 of group"):
            site.run(10)
        assert waiting(channel, QUEUE) == 30
        assert site.last() == planned
        with caplog.at_level(logging.WARNING, "harebell.spark"):
            assert _flat(site.run(10, tolerant=True)) == list(range(500, 530))
        assert [record.getMessage()[:8] for record in caplog.records] == ["claim 4 ", "claim 3 "]
        assert waiting(channel, QUEUE) == 0


def test_a_part_of_a_stream_that_was_planned_before_a_restore_is_read_as_far_as_it_is_there(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, STREAM)
    with site.day() as channel:
        publish(channel, QUEUE, 0, 30)
        site.run(20)
    snapshot(site.home, site.copy)
    with site.day() as channel:
        publish(channel, QUEUE, 30, 60)
        site.run(30, batches=0, plan=True)
    forget(site.home, site.copy)
    # As if the last micro-batch before the copy had not been read either: it has 10 to 29.
    offsets = site.checkpoint.offsets
    offsets[len(offsets) - 2][QUEUE]["position"] = 10
    with site.day() as channel:
        publish(channel, QUEUE, 500, 505)
        with pytest.raises(DataLoss, match="30 positions that were read are lost there, 5 of"):
            site.run()
        assert site.run(tolerant=True) == [list(range(10, 30)), list(range(500, 505))]


@pytest.mark.parametrize(
    "site", [CLASSIC, PRIORITY, STREAM], indirect=True, ids=["classic", "priority", "stream"]
)
def test_kills_of_the_broker_without_a_loss_are_followed_by_silence(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        for day in range(4):
            with site.day(killed=True) as channel:
                publish(channel, QUEUE, 10 * day, 10 * day + 10)
                site.run(4, batches=2, plan=day != 2)
        with site.day():
            site.run(4)
    assert site.got == list(range(40))
    assert not caplog.text


def test_a_forgotten_group_of_the_same_name_has_other_claims(site: Site) -> None:
    with site.day() as channel:
        publish(channel, QUEUE, 0, 10)
        site.run(5, batches=1, plan=True)
        group = site.last()["group"]
        with blocking.connect(site.url) as connection:
            other = connection.channel()
            for forget_it in (True, False):
                lease = other.lease_open(QUEUE, group)
                for number in range(1, 1 if forget_it else 3):
                    claim = other.lease_claim(QUEUE, group, lease.epoch, 2)
                    assert claim is not None
                    assert claim.number == number
                other.lease_close(QUEUE, group, lease.epoch, forget=forget_it)
        # Claims 1 and 2 are those of the checkpoint in number only.
        with pytest.raises(DataLoss, match="an operator removed it"):
            site.run()
        assert _flat(site.run(tolerant=True)) == [5, 6, 7, 8, 9]
        assert waiting(channel, QUEUE) == 0


def test_an_older_checkpoint_says_which_claims_the_sink_has(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with site.day() as channel:
        publish(channel, QUEUE, 0, 20)
        site.run(5, batches=1)
        older = deepcopy(site.checkpoint)
        site.run(5, batches=1, plan=True)
        site.run(5)
        site.checkpoint = older
        publish(channel, QUEUE, 30, 40)
        with pytest.raises(DataLoss, match="does not know 3 claims from 2 to 4 of group"):
            site.run()
        with caplog.at_level(logging.WARNING, "harebell.spark"):
            assert _flat(site.run(tolerant=True)) == list(range(30, 40))
        assert "3 claims from 2 to 4" in caplog.text


def test_an_older_checkpoint_of_a_stream_reads_again_what_came_after_it(tmp_path: Path) -> None:
    site = Site(tmp_path, STREAM)
    with site.day() as channel:
        publish(channel, QUEUE, 0, 20)
        site.run(5, batches=1)
        older = deepcopy(site.checkpoint)
    with site.day():
        site.run()
    with site.day():
        site.checkpoint = older
        assert _flat(site.run()) == list(range(5, 20))


@pytest.mark.parametrize("site", [CLASSIC, STREAM], indirect=True, ids=["classic", "stream"])
def test_a_queue_that_was_declared_again_between_copy_and_restore_is_told(site: Site) -> None:
    with site.day() as channel:
        publish(channel, QUEUE, 0, 10)
        site.run()
        # A query that is started again acknowledges what its log has.
        assert site.run() == []
    snapshot(site.home, site.copy)
    with site.day() as channel:
        channel.queue_delete(QUEUE)
        channel.queue_declare(QUEUE, durable=True, arguments=site.arguments)
        publish(channel, QUEUE, 10, 20)
        with pytest.raises(DataLoss, match="declared again"):
            site.run()
        assert _flat(site.run(tolerant=True)) == list(range(10, 20))
    forget(site.home, site.copy)
    with site.day() as channel:
        publish(channel, QUEUE, 20, 30)
        with pytest.raises(DataLoss, match="declared again"):
            site.run()
        found = _flat(site.run(tolerant=True))
        # The log of the stream has those of before the copy, too.
        assert found == list(range(0 if site.arguments else 10, 10)) + list(range(20, 30))


def test_a_checkpoint_of_the_version_before_goes_on_and_has_eras_from_then_on(
    tmp_path: Path,
) -> None:
    for name, arguments in (("classic", CLASSIC), ("stream", STREAM)):
        (tmp_path / name).mkdir()
        site = Site(tmp_path / name, arguments)
        with site.day() as channel:
            publish(channel, QUEUE, 0, 10)
            site.run(5, batches=1)
            del site.last()["eras"]
            assert _flat(site.run(5)) == [5, 6, 7, 8, 9]
            assert site.last()["eras"]


@pytest.mark.parametrize("site", [CLASSIC, STREAM], indirect=True, ids=["classic", "stream"])
@pytest.mark.parametrize("tolerant", [True, False])
def test_a_running_query_notices_that_the_broker_was_restored_under_it(
    site: Site, tolerant: bool
) -> None:
    with site.day() as channel:
        publish(channel, QUEUE, 0, 10)
        site.run()
    snapshot(site.home, site.copy)
    with site.day() as channel:
        publish(channel, QUEUE, 10, 20)
        query = site.query(tolerant=tolerant)
        assert numbers(query.batch() or []) == list(range(10, 20))
    forget(site.home, site.copy)
    try:
        with site.day() as channel:
            publish(channel, QUEUE, 500, 530)
            if not tolerant:
                with pytest.raises(DataLoss, match=r"an? older"):
                    query.plan()
                return
            assert numbers(query.batch() or []) == list(range(500, 530))
            assert not query.plan()
    finally:
        query.stop()


@pytest.mark.parametrize("fresh", [0, 30])
@pytest.mark.parametrize("before", [0, 10], ids=["new", "older"])
@pytest.mark.parametrize("looks", [False, True], ids=["claims-at-once", "looks-first"])
def test_a_group_that_was_opened_after_the_backup_and_has_lost_no_claim_goes_on(
    site: Site, *, looks: bool, before: int, fresh: int, caplog: pytest.LogCaptureFixture
) -> None:
    with site.day() as channel:
        publish(channel, QUEUE, 0, before)
        if before:
            site.run()
    snapshot(site.home, site.copy)
    with site.day():
        query = site.query()
        assert not query.plan()
    forget(site.home, site.copy)
    try:
        with site.day() as channel, caplog.at_level(logging.WARNING, "harebell.spark"):
            publish(channel, QUEUE, 500, 500 + fresh)
            if looks:
                # Over a new connection, on which the group is held again.
                query.prepare()
            assert numbers(query.batch() or []) == list(range(500, 500 + fresh))
            # This acknowledges the claim.
            assert query.drain() == []
            assert waiting(channel, QUEUE) == 0
        assert ("restored to an older state" in caplog.text) == looks, caplog.text
    finally:
        query.stop()


def test_a_task_whose_group_a_restored_broker_has_in_an_earlier_epoch_is_told_so(
    site: Site,
) -> None:
    with site.day() as channel:
        publish(channel, QUEUE, 0, 10)
        site.run(plan=True, batches=0)
    snapshot(site.home, site.copy)
    with site.day():
        query = site.query()
        assert query.plan()
    forget(site.home, site.copy)
    try:
        with site.day():
            with pytest.raises(SourceError, match="restored to an older state") as caught:
                query.read()
            assert "another query" not in str(caught.value)
            # The micro-batch is the same one after that.
            assert site.run() == [list(range(10))]
    finally:
        query.stop()


@pytest.mark.parametrize("site", [CLASSIC, STREAM], indirect=True, ids=["classic", "stream"])
def test_limits_of_a_batch_that_a_restored_broker_has_lost_are_told(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with site.day() as channel:
        publish(channel, QUEUE, 0, 30)
    snapshot(site.home, site.copy)

    def limit() -> str:
        """The end of the queue as the progress of a query has it."""
        peeking = {"url": site.url, "queue": QUEUE, "delivery": "peek"}
        peeking |= {"startingOffsets": "latest"}
        one = QueueSource(PATIENT | peeking).streamReader(BODIES)
        try:
            return json.dumps(one.initialOffset())
        finally:
            one.stop()

    def read(**limits: str) -> list[int]:
        reader = QueueSource(PATIENT | {"url": site.url, "queue": QUEUE} | limits).reader(BODIES)
        return sorted(int(row["value"]) for row in read_rows(reader, reader.partitions()))

    with site.day():
        kept = limit()
    with site.day() as channel, caplog.at_level(logging.WARNING, "harebell.spark"):
        assert read(startingOffsets=kept) == []
        publish(channel, QUEUE, 30, 50)
        assert read(startingOffsets=kept) == list(range(30, 50))
        assert read(endingOffsets=kept) == list(range(30))
        assert not caplog.text
        ahead = limit()
    forget(site.home, site.copy)
    with site.day() as channel:
        publish(channel, QUEUE, 500, 540)
        for name in ("startingOffsets", "endingOffsets"):
            with pytest.raises(DataLoss, match="20 positions are lost there, and 20 of them"):
                read(**{name: ahead})
        assert read(startingOffsets=ahead, failOnDataLoss="false") == list(range(500, 540))
        assert read(startingOffsets=kept) == list(range(500, 540))
        assert "which ends at position" not in caplog.text
        assert len(read(endingOffsets="10000")) == 70
        assert "says 10000 for queue 'daily', which ends at position" in caplog.text


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("site", [CLASSIC, STREAM], indirect=True, ids=["classic", "stream"])
def test_spark_reads_what_a_restored_broker_got_since_the_backup(
    spark: SparkSession, site: Site, tmp_path: Path
) -> None:
    options = PATIENT | {"queue": QUEUE, "maxOffsetsPerTrigger": "1000"}
    if site.arguments == STREAM:
        options["startingOffsets"] = "earliest"
    lake = Lake(spark, options, tmp_path)
    with site.day() as channel:
        options["url"] = site.url
        publish(channel, QUEUE, 0, 100)
        lake.run()
    snapshot(site.home, site.copy)
    with site.day() as channel:
        publish(channel, QUEUE, 100, 500)
        lake.run()
    forget(site.home, site.copy)
    with site.day() as channel:
        publish(channel, QUEUE, 1_000, 1_500)
        with pytest.raises(StreamingQueryException, match=r"an? older"):
            lake.run()
        options["failOnDataLoss"] = "false"
        lake.run()
        assert lake.ids() == [*range(500), *range(1_000, 1_500)]
        assert waiting(channel, QUEUE) == (600 if site.arguments == STREAM else 0)
        # The checkpoint belongs to the restored broker from here on.
        options["failOnDataLoss"] = "true"
        publish(channel, QUEUE, 2_000, 2_010)
        lake.run()
        assert lake.ids()[-10:] == list(range(2_000, 2_010))

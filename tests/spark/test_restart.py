"""What a restart of a checkpoint will do is said before, and then happens; without a JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from harebell.client import blocking
from harebell.spark.reading.data_loss_policy import DataLoss
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.offsets import OffsetError
from harebell.spark.source import QueueSource
from harebell.testing import StreamCalls
from tests.cli.conftest import Result, done, run
from tests.patience import eventually
from tests.running import RunningBroker, running_broker
from tests.spark.asking import BODIES
from tests.spark.conftest import PATIENT

QUEUE = "orders"


@pytest.fixture
def own() -> Iterator[RunningBroker]:
    with running_broker() as started:
        yield started


class Played(StreamCalls):
    """A query, and what is foretold of it."""

    def __init__(self, broker: RunningBroker, place: Path, **options: str) -> None:
        self._broker = broker
        self._place = place
        given = PATIENT | {"url": broker.url, "queue": QUEUE} | options
        super().__init__(lambda: QueueSource(dict(given)).streamReader(BODIES))

    def numbers(self) -> list[int] | None:
        """Those of the next micro-batch."""
        rows = self.batch()
        return None if rows is None else [int(row["value"]) for row in rows]

    def said(self) -> tuple[int, str]:
        self.checkpoint.write(self._place)
        url = str(self._broker.data_dir)
        given = ("spark", "doctor", "--checkpoint", str(self._place), "--url", url)
        result: Result = run(self._broker, *given)
        assert not result.stderr, result.stderr
        return result.returncode, result.stdout.decode()


def _publish(broker: RunningBroker, first: int, end: int, **arguments: Any) -> None:
    with blocking.connect(broker.url) as connection, connection.channel(confirms=True) as channel:
        channel.declare_queue(QUEUE, durable=True, arguments=arguments)
        for number in range(first, end):
            channel.publish(b"%d" % number, routing_key=QUEUE, delivery_mode=2)


def test_a_query_that_died_in_a_micro_batch_goes_on_as_foretold(
    own: RunningBroker, tmp_path: Path
) -> None:
    _publish(own, 0, 5)
    query = Played(own, tmp_path)
    assert query.said() == (
        0,
        f"note  checkpoint {tmp_path} has no micro-batch: the query begins anew\n",
    )
    assert query.numbers() == list(range(5))
    _publish(own, 5, 8)
    assert query.plan()
    query.stop()
    group = query.checkpoint.offsets[0][QUEUE]["group"]
    assert json.loads(done(own, "leases", "show", QUEUE, group, "--json"))["open"] == [
        {"number": 2, "messages": 3}
    ]
    _publish(own, 8, 10)
    code, said = query.said()
    assert code == 0
    assert "micro-batch 1 did not end and is repeated" in said
    assert "goes on: 3 messages are read again for the last micro-batch; then 2 messages" in said
    # To say it has not fenced the query.
    query.restart()
    assert query.numbers() == [5, 6, 7]
    code, said = query.said()
    assert (code, "micro-batch 1 has ended" in said) == (0, True)
    assert "goes on: 3 messages are acknowledged, as Spark has processed them; then 2" in said
    assert query.numbers() == [8, 9]
    query.stop()


def test_claims_that_went_back_and_queues_that_are_gone_are_foretold(
    own: RunningBroker, tmp_path: Path
) -> None:
    _publish(own, 0, 5)
    query = Played(own, tmp_path, leaseTimeout="1s")
    assert query.plan()
    query.stop()
    group = query.checkpoint.offsets[0][QUEUE]["group"]
    assert eventually(lambda: "comes again: 1 claim of group" in query.said()[1])
    code, said = query.said()
    assert code == 1
    assert "went back to the queue (1), 0 of them processed" in said
    query.restart()
    with pytest.raises(DataLoss):
        query.plan()
    done(own, "leases", "release", QUEUE, group, "--forget")
    code, said = query.said()
    assert (code, "comes again: the broker has no such group" in said) == (1, True)
    assert "5 messages are in the queue" in said
    done(own, "queues", "delete", QUEUE)
    assert query.said()[1].count("lost: the queue is gone") == 1
    _publish(own, 0, 1)
    code, said = query.said()
    assert (code, "lost: the queue was deleted and declared again" in said) == (1, True)


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_claims_with_numbers_that_an_old_checkpoint_has_used_before_are_read(
    own: RunningBroker, tmp_path: Path, ahead: int
) -> None:
    _publish(own, 0, 5)
    query = Played(own, tmp_path, failOnDataLoss="false", maxOffsetsPerTrigger="1")
    assert [query.numbers() for _ in range(6)] == [[number] for number in range(5)] + [None]
    _publish(own, 5, 12)
    offset = query.checkpoint.offsets[4][QUEUE]
    offset["claim"] += ahead
    query.restart()
    with pytest.raises(SourceError, match="somebody has changed the checkpoint"):
        query.batch()
    # As a version before eras wrote it, on a broker that was restored to an older state since.
    del offset["eras"]
    query.restart()
    assert query.plan()
    # As Spark does with a micro-batch that did not end.
    query.restart()
    found = []
    while (rows := query.numbers()) is not None:
        found += rows
    assert found == list(range(5, 12))


def test_very_many_claims_that_the_broker_does_not_know_are_told_at_once(
    own: RunningBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _publish(own, 0, 5)
    query = Played(own, tmp_path)
    assert query.numbers() == list(range(5))
    offset = query.checkpoint.offsets[0][QUEUE]
    offset |= {"claim": 10**15, "eras": "0" * 16 + ":1"}
    _publish(own, 5, 8)
    query.restart()
    text = f"{10**15} claims from 1 to {10**15} of group"
    with pytest.raises(DataLoss, match=text):
        query.batch()
    query.stop()
    tolerant = Played(own, tmp_path, failOnDataLoss="false")
    tolerant.checkpoint.offsets, tolerant.checkpoint.commits = query.checkpoint.offsets, {0}
    tolerant.restart()
    with caplog.at_level("WARNING"):
        assert [tolerant.numbers() for _ in range(3)] == [list(range(5)), [5, 6, 7], None]
    tolerant.stop()
    # It is said once.
    assert caplog.text.count(text) == 1
    assert tolerant.said()[1].endswith("then 0 messages that are in the queue\n")
    # One that no broker has made is no offset.
    offset["claim"] = 10**30
    query.checkpoint.offsets[max(query.checkpoint.offsets)] = {QUEUE: offset}
    query.restart()
    with pytest.raises(OffsetError, match="which the harebell source did not write"):
        query.batch()


def test_a_stream_that_is_shorter_than_its_checkpoint_is_foretold(
    own: RunningBroker, tmp_path: Path
) -> None:
    _publish(own, 0, 5, **{"x-queue-type": "stream"})
    query = Played(own, tmp_path, startingOffsets="earliest")
    assert query.numbers() == list(range(5))
    _publish(own, 5, 7, **{"x-queue-type": "stream"})
    code, said = query.said()
    assert (code, "goes on: 0 positions of the last micro-batch, then 2 new ones" in said) == (
        0,
        True,
    )
    offsets = query.checkpoint.offsets
    offsets[1] = {QUEUE: offsets[0][QUEUE] | {"position": 9}}
    code, said = query.said()
    assert (code, "lost: 2 positions from 7 on were read and are not there" in said) == (1, True)
    assert "0 new messages took their places" in said
    query.stop()


@pytest.mark.parametrize(
    ("kind", "foretold"),
    [
        ("stream", "lost: 5 positions from 0 on were read and are not there"),
        ("classic", "comes again: the broker has claims up to 0 only"),
    ],
)
def test_a_checkpoint_of_another_history_with_the_same_numbers_is_foretold(
    own: RunningBroker, tmp_path: Path, kind: str, foretold: str
) -> None:
    _publish(own, 0, 5, **{"x-queue-type": kind})
    options = {"startingOffsets": "earliest"} if kind == "stream" else {}
    query = Played(own, tmp_path, **options)
    assert query.numbers() == list(range(5))
    assert query.said()[0] == 0
    first = 0 if kind == "stream" else 1
    offsets = query.checkpoint.offsets
    offsets[0] = {QUEUE: offsets[0][QUEUE] | {"eras": f"{'a' * 16}:{first}"}}
    code, said = query.said()
    assert (code, foretold in said) == (1, True), said
    query.restart()
    with pytest.raises(DataLoss):
        query.plan()
    query.stop()


def test_a_query_that_runs_is_named_and_claims_it_has_not_planned_are_counted(
    own: RunningBroker, tmp_path: Path
) -> None:
    _publish(own, 0, 12)
    query = Played(own, tmp_path, maxOffsetsPerTrigger="4")
    assert query.numbers() == [0, 1, 2, 3]
    start = query.checkpoint.offsets[0]
    # Claimed by a driver that dies before Spark logs it.
    query.reader.latestOffset(start, query.reader.getDefaultReadLimit())
    code, said = query.said()
    assert code == 0
    assert (
        "goes on: 4 messages are acknowledged, as Spark has processed them; 4 messages are claimed "
        "and not planned yet; then 4 messages that are in the queue; '127.0.0.1:"
    ) in said
    assert "holds the group now" in said
    query.stop()
    query.restart()
    assert query.numbers() == [4, 5, 6, 7]
    query.stop()


def test_positions_that_retention_has_removed_are_foretold(
    own: RunningBroker, tmp_path: Path
) -> None:
    kept = {"x-max-length-bytes": 50_000, "x-stream-max-segment-size-bytes": 10_000}
    arguments: dict[str, Any] = {"x-queue-type": "stream"} | kept
    _publish(own, 0, 5, **arguments)
    query = Played(own, tmp_path, startingOffsets="earliest")
    assert query.numbers() == list(range(5))
    query.stop()
    with blocking.connect(own.url) as connection, connection.channel(confirms=True) as channel:
        for _ in range(200):
            channel.publish(bytes(1_000), routing_key=QUEUE, delivery_mode=2)

        def foretold() -> bool:
            first = channel.span(QUEUE).first
            text = f"lost: positions 5 to {first - 1} are gone, as by retention"
            code, said = query.said()
            return first > 5 and code == 1 and text in said

        # Retention removes segments a little later.
        assert eventually(foretold)
    query.restart()
    with pytest.raises(DataLoss):
        query.plan()
    query.stop()


def test_plain_amqp_is_foretold_to_come_again(own: RunningBroker, tmp_path: Path) -> None:
    _publish(own, 0, 5)
    query = Played(own, tmp_path, delivery="at-least-once")
    assert query.numbers() == list(range(5))
    query.stop()
    code, said = query.said()
    assert code == 0
    assert "comes again: plain AMQP, so what was not acknowledged is delivered again" in said
    query.restart()
    query.number, query.checkpoint.commits = 0, set()
    assert eventually(lambda: query.numbers() == list(range(5)))
    query.stop()


def test_an_older_checkpoint_is_foretold(own: RunningBroker, tmp_path: Path) -> None:
    _publish(own, 0, 12)
    query = Played(own, tmp_path, maxOffsetsPerTrigger="4")
    assert query.numbers() == [0, 1, 2, 3]
    older = deepcopy(query.checkpoint)
    assert query.numbers() == [4, 5, 6, 7]
    assert query.numbers() == [8, 9, 10, 11]
    query.stop()
    query.checkpoint = older
    code, said = query.said()
    assert code == 1
    # The last micro-batch was not known to have ended.
    assert "lost, unless the sink has them: 1 claim of group" in said
    assert "(2) were acknowledged after this checkpoint, which is older than the broker's" in said
    assert (
        "with failOnDataLoss=false the query goes on behind them. 4 messages are in the queue"
        in said
    )
    query.restart()
    with pytest.raises(DataLoss, match="does not know claim 2 of group"):
        query.plan()
    tolerant = Played(own, tmp_path, failOnDataLoss="false")
    tolerant.checkpoint = query.checkpoint
    tolerant.restart()
    assert tolerant.numbers() == [8, 9, 10, 11]
    tolerant.stop()

"""The claims that a checkpoint of a pipeline speaks of, at a broker; without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harebell.client import blocking
from harebell.pipeline.run.logged_claims import commit_logged_claims
from harebell.pipeline.run.unused_checkpoint import remove_unused
from harebell.pipeline.spec.description import Description, Sink, Source, Trigger
from tests.ports import free_port
from tests.spark.asking import publish
from tests.spark.test_writer import waiting

GROUP = "spark-1"


class Ended:
    """A pipeline that has planned two micro-batches of five messages each, and has ended."""

    def __init__(
        self, url: str, queue: str, directory: Path, finished: int, eras: str = ""
    ) -> None:
        self.checkpoint = directory / "checkpoint"
        for kind in ("offsets", "commits"):
            (self.checkpoint / kind).mkdir(parents=True)
        with blocking.connect(url) as connection:
            channel = connection.channel()
            lease = channel.lease_open(queue, GROUP, timeout=3_600)
            for number in range(2):
                claim = channel.lease_claim(queue, GROUP, lease.epoch, messages=5)
                assert claim is not None
                place = {"generation": lease.generation, "group": GROUP, "claim": claim.number}
                if eras:
                    place["eras"] = eras
                log = f"v1\n{{}}\n{json.dumps({queue: place})}"
                (self.checkpoint / "offsets" / str(number)).write_text(log)
        for number in range(finished):
            (self.checkpoint / "commits" / str(number)).write_text("v1")
        self.pipeline = Description(
            name="orders",
            file=None,
            directory=directory,
            sources=(Source("orders", {"queue": queue, "url": url}),),
            steps=(),
            sinks=(Sink("lake", "delta", "orders", "lake"),),
            trigger=Trigger(),
            checkpoint=self.checkpoint,
        )


@pytest.mark.parametrize(("finished", "committed", "left"), [(0, 0, 2), (1, 1, 1), (2, 2, 0)])
def test_finished_batches_are_acknowledged_and_the_rest_stays_claimed(
    broker_url: str,
    channel: Any,
    queue: str,
    tmp_path: Path,
    finished: int,
    committed: int,
    left: int,
) -> None:
    publish(channel, queue, 0, 12)
    ended = Ended(broker_url, queue, tmp_path, finished)
    commit_logged_claims(ended.pipeline)
    commit_logged_claims(ended.pipeline)
    assert waiting(channel, queue) == 2
    with blocking.connect(broker_url) as connection:
        lease = connection.channel().lease_open(queue, GROUP)
        assert (lease.committed, len(lease.claims), lease.lost) == (committed, left, 0)


def test_claims_that_a_restored_broker_has_made_under_the_same_numbers_stay(
    broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, 0, 12)
    ended = Ended(broker_url, queue, tmp_path, 2, eras=f"{'a' * 16}:1")
    commit_logged_claims(ended.pipeline)
    with blocking.connect(broker_url) as connection:
        lease = connection.channel().lease_open(queue, GROUP)
        assert (lease.committed, len(lease.claims), lease.lost) == (0, 2, 0)


def test_messages_of_a_checkpoint_that_is_removed_go_back_at_once(
    broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, 0, 12)
    ended = Ended(broker_url, queue, tmp_path, 0)
    assert waiting(channel, queue) == 2
    remove_unused(ended.pipeline)
    assert waiting(channel, queue) == 12
    assert not (ended.checkpoint / "offsets").exists()


def test_a_broker_that_is_away_or_has_no_such_queue_is_no_error(
    broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, 0, 12)
    ended = Ended(broker_url, queue, tmp_path, 1)
    channel.queue_delete(queue)
    commit_logged_claims(ended.pipeline)
    ended.pipeline.sources[0].options["url"] = f"amqp://guest:guest@127.0.0.1:{free_port()}/%2F"
    commit_logged_claims(ended.pipeline)

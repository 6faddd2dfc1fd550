"""Staged batches of a running broker: listed, and dropped by an operator or by who staged them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from harebell.client.blocking import Channel, connect
from harebell.client.errors import PreconditionFailed
from tests.cli.conftest import done, error_of, listed, run
from tests.running import RunningBroker


def _stage(channel: Channel, publisher: str, batch: int, attempt: int = 0) -> None:
    data = pa.record_batch({"value": [b"one", b"two"]}).serialize().to_pybytes()
    channel.stage_append(
        publisher,
        "run",
        batch=batch,
        part=0,
        attempt=attempt,
        number=0,
        columns="value",
        data=data,
    )


def test_an_operator_sees_what_is_staged_and_drops_it(broker: RunningBroker) -> None:
    with connect(broker.address()) as connection:
        channel = connection.channel()
        channel.stage_open("writer", "run")
        for batch in (0, 1):
            _stage(channel, "writer", batch)
        rows = [each for each in listed(broker, "stages") if each["publisher"] == "writer"]
        assert [(each["batch"], each["rows"], each["connections"]) for each in rows] == [
            (0, 2, 1),
            (1, 2, 1),
        ]
        assert all(each["octets"] > 0 for each in rows)
        text = done(broker, "stages", "drop", "writer", "--batch", "0")
        assert text == "what publisher 'writer' had staged was dropped: 1 batch, 2 rows"
        with pytest.raises(PreconditionFailed, match="0 of 2 rows"):
            channel.stage_commit("writer", "run", batch=0, parts=[(0, 0, 2)])
        done(broker, "stages", "drop", "writer")
        assert not [each for each in listed(broker, "stages") if each["publisher"] == "writer"]


def test_an_attempt_that_failed_takes_its_rows_with_it(broker: RunningBroker) -> None:
    with connect(broker.address()) as connection:
        channel = connection.channel()
        channel.stage_open("trier", "run")
        for attempt in (0, 1):
            _stage(channel, "trier", 0, attempt)
        assert channel.stage_discard("trier", "run", batch=0, part=0, attempt=0) == 2
        (row,) = [each for each in listed(broker, "stages") if each["publisher"] == "trier"]
        assert (row["attempts"], row["rows"]) == (1, 2)
        assert channel.stage_discard("trier", "run", batch=0, part=0, attempt=1) == 2
        assert not [each for each in listed(broker, "stages") if each["publisher"] == "trier"]


def test_a_publisher_that_has_nothing_staged_is_named(broker: RunningBroker) -> None:
    told = error_of(run(broker, "stages", "drop", "nobody"))
    assert told.endswith(
        "refused: no batch of publisher 'nobody' is staged in vhost '/': `harebell stages list` "
        "shows all"
    )

"""The verbs of staged publishing, against a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pyarrow as pa
import pytest

from harebell.client import aio, blocking
from harebell.client.errors import (
    ChannelClosed,
    ExtensionMissing,
    Fenced,
    NotFound,
    PreconditionFailed,
)
from harebell.client.limits import CLIENT_CHUNK_BYTES
from harebell.client.protocol.stages import Committed
from tests.running import RunningBroker, running_broker
from tests.unit.client.octets import Peer

COLUMNS = "value,routing_key"


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as started:
        yield started


def batch(count: int, key: str = "rows", size: int = 1000) -> bytes:
    """Rows as a record batch of several frames."""
    found = pa.record_batch(
        {"value": [b"%d-" % n + bytes(size) for n in range(count)], "routing_key": [key] * count}
    )
    return bytes(found.serialize().to_pybytes())


def test_a_large_piece_is_written_in_chunks_and_arrives_as_it_was() -> None:
    peer = Peer()
    peer.open(frame_max=4096)
    channel = peer.channel(confirms=False)
    data = bytes(range(256)) * 4096
    channel.content(61, memoryview(data))
    peer.core.out.frame(8, 0, b"")
    head, *chunks = iter(peer.core.take_output, b"")
    assert max(map(len, chunks)) <= CLIENT_CHUNK_BYTES
    assert len(chunks) > 4
    written = peer.frames_in(head + b"".join(chunks))
    assert b"".join(frame.payload for frame in written[1:-1]) == data
    assert written[-1].kind == 8, "what came later follows"


def test_a_batch_is_staged_and_committed_once(broker: RunningBroker) -> None:
    with blocking.connect(broker.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("rows", durable=True)
        first = channel.stage_open("query", "run 1")
        assert first == 0
        for number in range(2):
            rows = channel.stage_append(
                "query",
                "run 1",
                batch=0,
                part=0,
                attempt=9,
                number=number,
                columns=COLUMNS,
                data=batch(500),
            )
        assert rows == 1000
        parts = [(0, 9, 1000)]
        done = channel.stage_commit("query", "run 1", batch=0, parts=parts)
        assert done == Committed(rows=1000, unroutable=0, repeated=False)
        again = channel.stage_commit("query", "run 1", batch=0, parts=parts)
        assert again == Committed(rows=0, unroutable=0, repeated=True)
        assert channel.declare_queue("rows", durable=True, passive=True).message_count == 1000
        assert channel.stage_open("query", "run 1") == 1
        assert channel.stage_abort("query", "run 1", batch=1) == 0


def test_errors_say_what_is_wrong(broker: RunningBroker) -> None:
    with blocking.connect(broker.address()) as connection:
        connection.channel().stage_open("errors", "old")
        connection.channel().stage_open("errors", "new")
        with pytest.raises(Fenced, match="run 'old' of publisher 'errors' is fenced"):
            connection.channel().stage_commit("errors", "old", batch=0, parts=[])
        with pytest.raises(NotFound, match="run 'r' of publisher 'nobody' was not opened here"):
            connection.channel().stage_abort("nobody", "r", batch=0)
        with pytest.raises(PreconditionFailed, match=r"0 of 5 rows of its part 3 \(attempt 1\)"):
            connection.channel().stage_commit("errors", "new", batch=0, parts=[(3, 1, 5)])
        options = {"batch": 0, "part": 0, "attempt": 0, "number": 0}
        channel = connection.channel()
        with pytest.raises(PreconditionFailed, match="there is no column 'key'"):
            channel.stage_append("errors", "new", **options, columns="key", data=b"")
        channel = connection.channel()
        data = batch(2, key="no such queue")
        channel.stage_append("errors", "new", **options, columns=COLUMNS, data=data)
        with pytest.raises(ChannelClosed, match="2 of 2 rows of batch 0 reach no queue") as caught:
            channel.stage_commit("errors", "new", batch=0, parts=[(0, 0, 2)], mandatory=True)
        assert caught.value.code == 312


def test_pieces_may_overlap_under_asyncio(broker: RunningBroker) -> None:
    async def run() -> list[int]:
        async with aio.connect(broker.address()) as connection:
            channel = await connection.channel()
            await channel.declare_queue("many")
            await channel.stage_open("async", "run")
            pieces = [
                channel.stage_append(
                    "async",
                    "run",
                    batch=0,
                    part=0,
                    attempt=0,
                    number=number,
                    columns=COLUMNS,
                    data=batch(10, "many"),
                )
                for number in range(8)
            ]
            rows = await asyncio.gather(*pieces)
            done = await channel.stage_commit("async", "run", batch=0, parts=[(0, 0, 80)])
            assert done.rows == 80
            return list(rows)

    assert asyncio.run(run()) == [10 * number for number in range(1, 9)]


def test_a_broker_without_the_extension_is_named(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blocking.connect(broker.address()) as connection:
        assert connection.extensions["stage"] == 1
        monkeypatch.delitem(connection.server_properties["harebell"], "stage")
        with pytest.raises(ExtensionMissing, match="needs Harebell's extension 'stage'"):
            connection.channel().stage_open("p", "r")

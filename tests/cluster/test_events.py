"""Events and log lines of every owner come out of the exchanges in the vhost "/"."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from harebell.base.values import Long
from harebell.cluster.events import SERVICE as EVENT_SERVICE
from harebell.cluster.events import Bound, Record
from harebell.cluster.limits import CLUSTER_EVENT_BYTES
from harebell.cluster.lines import Begin, line_of
from harebell.cluster.link import ClusterListener, Header, open_link
from harebell.cluster.stores import ClusterAddress
from harebell.model.events import EVENT_EXCHANGE
from harebell.model.log_exchange import LOG_EXCHANGE
from tests.cluster.owners import SECRET, Owners, running_owners
from tests.patience import eventually

FAR = "far"
GET = {"count": 100, "ackmode": "ack_requeue_false", "encoding": "auto"}


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owners]:
    with running_owners(tmp_path_factory.mktemp("owners"), log_exchange=True) as found:
        found.paper.vhosts[FAR] = 2
        found.both[0].api.done("PUT", f"/api/vhosts/{FAR}", {})
        yield found


@contextmanager
def bound(owners: Owners, exchange: str, key: str = "#") -> Iterator[str]:
    """A queue of the vhost "/" that gets what an exchange publishes, when both owners know it."""
    api, broker = owners.both[0].api, owners.both[1].app.broker
    made_for = broker.events if exchange == EVENT_EXCHANGE else broker.log
    api.done("PUT", "/api/queues/%2F/q", {"durable": True})
    api.done("POST", f"/api/bindings/%2F/e/{exchange}/q/q", {"routing_key": key})
    assert eventually(lambda: made_for.elsewhere is not None)
    yield "q"
    api.done("DELETE", "/api/queues/%2F/q")
    # Nothing is made any more while nothing is bound.
    assert eventually(lambda: made_for.elsewhere is None)


def messages(owners: Owners, queue: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        owners.both[0].api.done("POST", f"/api/queues/%2F/{queue}/get", GET).json
    )
    return found


def test_events_of_the_other_store_are_published_in_order(owners: Owners) -> None:
    second = owners.both[1]
    with bound(owners, EVENT_EXCHANGE, "queue.#") as queue:
        second.api.done("PUT", f"/api/queues/{FAR}/a", {"arguments": {"x-max-length": 7}})
        second.api.done("DELETE", f"/api/queues/{FAR}/a")
        got: list[dict[str, Any]] = []
        assert eventually(lambda: len(got.extend(messages(owners, queue)) or got) >= 2)
    assert [each["routing_key"] for each in got] == ["queue.created", "queue.deleted"]
    made = got[0]["properties"]
    assert made["delivery_mode"] == 2
    headers = made["headers"]
    assert (headers["vhost"], headers["name"], headers["type"]) == (FAR, "a", "classic")
    assert headers["arguments"] == {"x-max-length": 7}
    assert headers["user_who_performed_action"] == "guest"
    assert made["timestamp"] == headers["timestamp_in_ms"] // 1000


def test_log_lines_of_the_other_store_have_its_name(owners: Owners) -> None:
    write = owners.both[1].app.logger.write
    with bound(owners, LOG_EXCHANGE, "error") as queue:
        write("error", "it is far away")
        write("info", "nothing wrong")
        got: list[dict[str, Any]] = []
        assert eventually(lambda: got.extend(messages(owners, queue)) or got)
    assert [each["routing_key"] for each in got] == ["error"]
    assert got[0]["payload"].endswith("it is far away")
    assert got[0]["properties"]["headers"] == {"node": "far@localhost"}


def test_events_refused_by_the_owner_of_store_1_are_left_out_and_counted(owners: Owners) -> None:
    first, second = owners.both
    events = second.app.broker.events
    links = []

    class ReadsOnce(asyncio.Protocol):
        """Answers what the caller sends first, and reads nothing else."""

        def __init__(self, transport: asyncio.Transport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.transport.pause_reading()
            self.transport.write(line_of(Bound(events=True)))
            links.append(self.transport)

    def never_reads(_: Header, transport: asyncio.Transport) -> None:
        transport.set_protocol(ReadsOnce(transport))
        transport.resume_reading()

    async def listen() -> ClusterListener:
        found = ClusterListener({EVENT_SERVICE: never_reads}, SECRET, None, lambda *_: None)
        await found.listen("127.0.0.1", 0)
        return found

    slow = owners.call(listen())
    owners.paper.addresses[1] = ClusterAddress(1, f"127.0.0.1:{slow.port}")
    assert eventually(lambda: links and events.elsewhere is not None)
    before = second.events.lost

    def make() -> None:
        for _ in range(100):
            events.note("queue.created", {"name": "n" * 10_000})
        events.publish()

    for _ in range(40):
        # Ten times what may wait; what the kernel takes comes to little.
        owners.do(make)
        assert second.events._size <= CLUSTER_EVENT_BYTES
    assert second.events.lost - before > 1_000
    assert eventually(lambda: any("events and log lines were left out" in x for x in second.log))
    owners.do(first.come_back)
    assert eventually(lambda: events.elsewhere is None)
    owners.do(slow.close)
    # The connection to the owner is there again.
    with bound(owners, EVENT_EXCHANGE):
        pass


def test_a_record_that_no_broker_sends_ends_the_connection(owners: Owners) -> None:
    first = owners.both[0]

    async def send(data: bytes) -> None:
        address = owners.paper.addresses[1]
        link = await open_link(address, SECRET, {"service": EVENT_SERVICE})
        ended = asyncio.Event()

        class Wait(asyncio.Protocol):
            def connection_lost(self, _: Exception | None) -> None:
                ended.set()

        link.set_protocol(Wait())
        link.resume_reading()
        link.write(line_of(Begin()) + data)
        async with asyncio.timeout(30):
            await ended.wait()

    no_table = line_of(Record("queue.created", headers=b"\xff\xff\xff\xff\xff"))
    for data in (b"\n", b"[]\n", no_table):
        owners.call(send(data))
    found = [line for line in first.log if "another owner sends a damaged line" in line]
    assert len(found) == 3


def test_a_table_comes_out_as_it_went_in(owners: Owners) -> None:
    headers = {"a": Long(2**40), "b": True, "c": {"d": ["e", b"\xff"]}, "f": ""}
    first, second = owners.both
    taken: list[tuple[str, Mapping[str, Any]]] = []
    take = first.app.broker.events.take
    with bound(owners, EVENT_EXCHANGE):
        first.app.broker.events.take = lambda key, table: taken.append((key, table))
        owners.do(lambda: second.events._event("queue.created", headers))
        assert eventually(lambda: ("queue.created", headers) in taken)
        first.app.broker.events.take = take

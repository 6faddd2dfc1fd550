"""Limits of users and of the cluster hold for all owners together."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import msgspec
import pika
import pytest
from pika.exceptions import (
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAccessDeniedError,
)

from harebell.auth.users import User, Users
from harebell.base.gauge import Gauge
from harebell.cluster.limits import (
    CLUSTER_USAGE_BYTES,
    CLUSTER_USAGE_PER_TURN,
    CLUSTER_USAGE_SECONDS,
)
from harebell.cluster.lines import Begin, Lines, line_of
from harebell.cluster.link import ClusterListener, Header
from harebell.cluster.stores import ClusterAddress
from harebell.cluster.usage import Usage, UsageElsewhere, UsageService, news
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.convert import headers_of
from harebell.model.broker import Broker
from harebell.model.settings.ceilings import Declared
from harebell.store.log.memory import MemoryStore
from harebell.wire.v09.states import ConnectionState
from tests.cluster.owners import SECRET, Owner, Owners, Paper, PaperDirectory, running_owners
from tests.patience import SECONDS, eventually

FAR = "far"
EXCHANGES = 7
"""Those that every vhost has from its beginning."""


@pytest.fixture
def owners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owners]:
    place = tmp_path_factory.mktemp("owners")
    with running_owners(place, vhost_max=3, cluster_queue_limit=3) as found:
        found.paper.vhosts[FAR] = 2
        found.both[0].api.done("PUT", f"/api/vhosts/{FAR}", {})
        yield found


def opened(owner: Owner, vhost: str, user: str = "guest") -> pika.BlockingConnection:
    port = owner.app.listeners[0].port
    login = pika.PlainCredentials(user, user)
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, vhost, login))


def limited(owners: Owners, **limits: int) -> None:
    """Make the user ann, with limits, who may use both vhosts."""
    api = owners.both[0].api
    api.done("PUT", "/api/users/ann", {"password": "ann", "tags": ""})
    for vhost in ("%2F", FAR):
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        api.done("PUT", f"/api/permissions/{vhost}/ann", everything)
    for name, value in limits.items():
        path = f"/api/user-limits/ann/{name.replace('_', '-')}"
        api.done("PUT", path, {"value": value})


def known(owners: Owners, at: int, connections: int, channels: int, name: str = "ann") -> bool:
    """Whether an owner knows in time what a user has open at the other one."""
    elsewhere = owners.both[at].elsewhere
    return eventually(lambda: elsewhere.of_user(name) == (connections, channels))


def test_a_user_has_as_many_connections_as_the_limit_says_at_all_owners(owners: Owners) -> None:
    limited(owners, max_connections=2)
    first, second = owners.both
    with ExitStack() as stack:
        for owner, vhost in ((first, "/"), (second, FAR)):
            stack.enter_context(closing(opened(owner, vhost, "ann")))
        assert known(owners, 0, 1, 0)
        assert known(owners, 1, 1, 0)
        text = r"user connection limit \(2\) is reached"
        for owner, vhost in ((first, "/"), (second, FAR)):
            with pytest.raises(ProbableAccessDeniedError, match=text):
                opened(owner, vhost, "ann")
    assert known(owners, 0, 0, 0)
    opened(first, "/", "ann").close()


def test_a_users_channels_at_all_owners_count(owners: Owners) -> None:
    limited(owners, max_channels=3)
    first, second = owners.both
    here = opened(first, "/", "ann")
    with closing(opened(second, FAR, "ann")) as there:
        there.channel()
        there.channel()
        assert known(owners, 0, 1, 2)
        here.channel()
        with pytest.raises(ConnectionClosedByBroker, match=r"allowed user limit of \(3\)"):
            here.channel()


def test_connections_and_channels_of_the_other_processes_of_a_node_count(owners: Owners) -> None:
    first, second = owners.both
    first.app.settings.connection_max = 2
    first.app.settings.channel_max_per_node = 3
    with closing(opened(second, FAR)) as there:
        there.channel()
        there.channel()
        assert eventually(lambda: first.elsewhere.of_node() == (1, 2))
        here = opened(first, "/")
        with pytest.raises(ProbableAccessDeniedError, match=r"connection limit \(2\)"):
            opened(first, "/")
        here.channel()
        with pytest.raises(ConnectionClosedByBroker, match=r"maximum allowed limit of \(3\)"):
            here.channel()
    assert eventually(lambda: first.elsewhere.of_node() == (0, 0))
    opened(first, "/").close()


def test_users_without_a_limit_are_not_spoken_of(owners: Owners) -> None:
    limited(owners)
    with closing(opened(owners.both[1], FAR, "ann")):
        limited(owners, max_connections=9)
        assert known(owners, 0, 1, 0)
        assert owners.both[0].elsewhere.of_user("guest") == (0, 0)
        owners.both[0].api.done("DELETE", "/api/user-limits/ann/max-connections")
        assert known(owners, 0, 0, 0)


def test_vhosts_and_queues_of_all_owners_count(owners: Owners) -> None:
    first, second = owners.both
    for name in ("a", "b"):
        second.api.done("PUT", f"/api/queues/{FAR}/{name}", {"durable": True})
    declared = Declared(1, 2, EXCHANGES)
    assert eventually(lambda: first.elsewhere.declared() == declared)
    with closing(opened(first, "/")) as connection:
        connection.channel().queue_declare("c")
        with pytest.raises(ChannelClosedByBroker, match=r"queue limit in cluster \(3\) is reached"):
            connection.channel().queue_declare("d")
    owners.paper.vhosts["third"] = 2
    first.api.done("PUT", "/api/vhosts/third", {})
    assert eventually(lambda: first.elsewhere.declared().vhosts == 2)
    owners.paper.vhosts["fourth"] = 1
    answer = first.api.ask("PUT", "/api/vhosts/fourth", {})
    assert "vhost limit of 3 is reached" in answer.json["reason"]


def test_an_owner_that_has_gone_leaves_its_declarations_and_no_connections(owners: Owners) -> None:
    limited(owners, max_connections=1)
    first, second = owners.both
    with closing(opened(second, FAR, "ann")):
        assert known(owners, 0, 1, 0)
        second.go_away()
        assert known(owners, 0, 0, 0)
    assert first.elsewhere.declared() == Declared(1, 0, EXCHANGES)
    second.come_back()
    with closing(opened(second, FAR, "ann")):
        assert known(owners, 0, 1, 0)


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"[]\n", "a damaged line: Expected `object`, got `array`"),
        (b'{"vhosts": "one"\n', "a damaged line: "),
        # The end of what comes may be too little for the reader to look at, so it is much more.
        (b"x" * (2 * CLUSTER_USAGE_BYTES), "a damaged line: it has more than 4194304 bytes"),
    ],
)
def test_an_owner_that_sends_nonsense_is_named_and_asked_again(
    owners: Owners, sent: bytes, text: str
) -> None:
    lines: list[str] = []
    answers: list[asyncio.Task[None]] = []

    async def answer(transport: asyncio.Transport, data: bytes) -> None:
        lines = Lines(transport)
        await lines.next(Begin)
        lines.writer.write(data)
        await lines.reader.read()

    async def listen() -> tuple[ClusterListener, UsageElsewhere]:
        def serve(_header: Header, transport: asyncio.Transport) -> None:
            data = line_of(Usage(queues=7)) if answers else sent
            answers.append(asyncio.create_task(answer(transport, data)))

        listener = ClusterListener({"usage": serve}, SECRET, None, print)
        await listener.listen("127.0.0.1", 0)
        paper = Paper({}, {2: ClusterAddress(1, f"127.0.0.1:{listener.port}")})
        return listener, UsageElsewhere(
            PaperDirectory(paper, 1),
            lambda _: True,
            lambda level, line: lines.append(f"{level}: {line}"),
        )

    listener, elsewhere = owners.call(listen())
    assert eventually(lambda: elsewhere.declared().queues == 7)
    assert [line for line in lines if text in line] == lines
    assert lines[0].startswith("warning: the owner of store 2 sends ")
    assert len(lines) == 1
    owners.do(elsewhere.close)
    owners.do(listener.close)


def test_many_users_come_in_several_records() -> None:
    many = {f"u{number}": (1, number) for number in range(2 * CLUSTER_USAGE_PER_TURN + 1)}
    old = Usage(1, 2, 3, users={"gone": (1, 1), "u0": (1, 0)})
    new = Usage(1, 2, 3, users=many)
    records = news(old, new)
    assert [len(each.users) for each in records] == [1000, 1000, 1]
    together = {name: use for each in records for name, use in each.users.items()}
    assert together.pop("gone") == (0, 0)
    assert together == {name: use for name, use in many.items() if name != "u0"}
    assert news(new, new) == []
    assert news(new, Usage(1, 2, 4, users=many)) == [Usage(1, 2, 4)]
    assert news(new, Usage(1, 2, 3, 5, 9, many)) == [Usage(1, 2, 3, 5, 9)]


class OpenConnection:
    """An open connection, as far as it is counted."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.state = ConnectionState.OPEN
        self.channels: dict[int, object] = {}


def test_an_owner_that_reads_slowly_misses_nothing_that_changes_meanwhile() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        broker = Broker(MemoryStore(Gauge()), Gauge(), headers_of)
        registry, users = ConnectionRegistry(Gauge()), Users(bytes)
        # So many bytes that they fit into no buffer of a socket.
        for number in range(40_000):
            user = User(f"{number:05}{'u' * 200}", "", max_connections=9)
            users.put(user)
            registry.connections.add(OpenConnection(user))  # type: ignore[arg-type]
        service = UsageService(broker, registry, users, print)
        near, far = socket.socketpair()
        protocol = asyncio.Protocol()
        transport, _ = await loop.create_connection(lambda: protocol, sock=near)
        service.serve({}, transport)
        reader, writer = await asyncio.open_connection(sock=far, limit=CLUSTER_USAGE_BYTES)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(line_of(Begin()))
        # It waits in the middle of the records until they are read, and counts on.
        await asyncio.sleep(4 * CLUSTER_USAGE_SECONDS)
        registry.connections.clear()
        await asyncio.sleep(4 * CLUSTER_USAGE_SECONDS)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        open_here: set[str] = set()
        seen = 0
        async with asyncio.timeout(SECONDS):
            while not seen or open_here:
                record = msgspec.json.decode(await reader.readline(), type=Usage)
                seen += len(record.users)
                for name, use in record.users.items():
                    (open_here.discard if use == (0, 0) else open_here.add)(name)
        service.close()
        writer.close()

    asyncio.run(run())

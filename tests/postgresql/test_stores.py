"""Clusters of several stores: a process per store, at the same ports, on every machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harebell.client.blocking import connect
from harebell.management.control.client import ControlError
from tests.patience import eventually
from tests.postgresql.cluster import Member
from tests.postgresql.machine import Machine
from tests.postgresql.servers import PostgresServer
from tests.running import command as harebell_command
from tests.running import environment, opens
from tests.unit.management.http.asking import Api

EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture
def machine(postgresql: PostgresServer, database: str) -> Iterator[Machine]:
    """A machine that owns both stores."""
    with Machine(postgresql.url(database), "one") as machine:
        machine.wait("running")
        yield machine


@pytest.fixture
def pair(postgresql: PostgresServer, database: str) -> Iterator[tuple[Machine, Machine]]:
    """A machine that owns both stores, and one that stands by for both."""
    url = postgresql.url(database)
    with ExitStack() as stack:
        one = stack.enter_context(Machine(url, "one"))
        one.wait("running")
        two = stack.enter_context(Machine(url, "two"))
        two.wait("standby")
        yield one, two


def _add_vhost(machine: Machine, name: str, store: int) -> None:
    """Add a vhost in a store, where the user guest may do everything."""
    machine.ask("vhosts.add", store, name=name, store=store)
    machine.ask("permissions.set", store, user="guest", vhost=name, **EVERYTHING)
    assert eventually(lambda: opens(machine.amqp(name)))


def _wait_for_standby(owner: Machine, store: int) -> None:
    """Wait until the owner of a store knows one that stands by."""

    def known() -> bool:
        rows = owner.ask("cluster.status", store)
        return any(
            row["store"] == store and row["state"] == "standby" and row["running"] for row in rows
        )

    assert eventually(known)


def _publish(url: str, body: bytes) -> None:
    with connect(url) as connection, connection.channel(confirms=True) as channel:
        channel.declare_queue("jobs", durable=True)
        channel.publish(body, routing_key="jobs", delivery_mode=2)


def _take(url: str) -> bytes:
    with connect(url) as connection, connection.channel() as channel:
        found = channel.get("jobs", no_ack=True)
        assert found is not None
        return bytes(found.body)


def test_each_store_has_a_process_and_all_of_them_one_port(machine: Machine) -> None:
    assert len(set(machine.pids())) == 2
    listeners = [machine.overview(each)["listeners"] for each in machine.stores]
    assert listeners[0] == listeners[1]
    assert f"amqp://127.0.0.1:{machine.member.port}" in listeners[0]


def test_a_client_is_served_whichever_process_accepts_it(machine: Machine) -> None:
    _add_vhost(machine, "far", 2)
    for number in range(10):
        _publish(machine.amqp("far"), b"%d" % number)
        _publish(machine.amqp(), b"%d" % number)
    found = [
        [(row["vhost"], row["messages"]) for row in machine.ask("queues.list", store, vhost=vhost)]
        for store, vhost in ((1, "/"), (2, "far"))
    ]
    assert found == [[("/", 10)], [("far", 10)]]


def test_a_client_outlives_the_process_that_accepted_it(machine: Machine) -> None:
    _add_vhost(machine, "far", 2)
    with ExitStack() as stack:
        # Some of them were accepted by the other process.
        clients = [stack.enter_context(connect(machine.amqp("far"))) for _ in range(20)]
        os.kill(machine.pids()[0], signal.SIGKILL)
        for each in clients:
            with each.channel() as channel:
                channel.declare_queue("jobs", durable=True)


def test_a_limit_of_a_user_holds_in_all_stores(machine: Machine) -> None:
    _add_vhost(machine, "far", 2)
    machine.ask("limits.set", user="guest", max_connections=1)
    with connect(machine.amqp()):
        assert eventually(lambda: not opens(machine.amqp("far")))
    assert eventually(lambda: opens(machine.amqp("far")))


def test_events_of_every_store_are_published_in_the_first_vhost(machine: Machine) -> None:
    _add_vhost(machine, "far", 2)
    with (
        connect(machine.amqp()) as connection,
        connection.channel() as channel,
        connect(machine.amqp("far")) as other,
        other.channel() as there,
    ):
        queue = channel.declare_queue("", exclusive=True).name
        channel.bind_queue(queue, "amq.rabbitmq.event", "queue.created")
        seen: list[object] = []

        def made_and_seen() -> bool:
            # The other owner knows within a moment that there is a binding.
            there.declare_queue("", exclusive=True)
            event = channel.get(queue, no_ack=True)
            if event is not None:
                seen.append(event.headers["vhost"])
            return bool(seen)

        assert eventually(made_and_seen)
        assert seen == ["far"]


def _all_serve(ask: Callable[..., Any], store: int) -> bool:
    """Whether a status has an owner and a broker that stands by for each of two stores."""
    rows = [(row["store"], row["name"], row["state"]) for row in ask("cluster.status", store)]
    return rows == [(n, *each) for n in (1, 2) for each in (("one", "owner"), ("two", "standby"))]


def test_commands_work_at_every_process(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    for number, (machine, store) in enumerate([(one, 1), (one, 2), (two, 1), (two, 2)]):
        machine.ask("vhosts.add", store, name=f"v{number}")
        machine.ask("users.add", store, name=f"u{number}", password="secret")
        machine.ask("permissions.set", store, user=f"u{number}", vhost=f"v{number}", **EVERYTHING)
        _publish(machine.amqp(f"v{number}", f"u{number}:secret"), b"mine")
    stores = {row["name"]: row for row in one.ask("vhosts.list")}
    assert set(stores) == {"/", "v0", "v1", "v2", "v3"}
    for machine, store in ((one, 1), (one, 2), (two, 1), (two, 2)):
        rows = machine.ask("queues.list", store)
        assert [(row["vhost"], row["messages"]) for row in rows] == [(f"v{n}", 1) for n in range(4)]
        users = {row["name"] for row in machine.ask("users.list", store)}
        assert users == {"guest", "u0", "u1", "u2", "u3"}
        # Brokers that stand by say so a while after the owners serve.
        assert eventually(partial(_all_serve, machine.ask, store))


def test_texts_for_people_name_the_store(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    _add_vhost(one, "far", 2)
    assert {row["name"]: row["store"] for row in two.ask("vhosts.list")} == {"/": 1, "far": 2}
    for machine in pair:
        assert [machine.overview(each)["storage"]["store"] for each in (1, 2)] == [1, 2]
    assert eventually(lambda: "this broker owns store 2 in PostgreSQL" in one.log)
    assert eventually(lambda: "standing by: one owns store 2" in two.log)


def test_clients_that_are_passed_on_are_counted(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    _add_vhost(one, "far", 2)
    _wait_for_standby(one, 2)
    one.ask("cluster.move", name="two", store=2)
    two.wait("standby", "running")
    one.wait("running", "standby")
    with ExitStack() as clients:
        for _ in range(16):
            clients.enter_context(connect(one.amqp("far")))
        # They go straight to the owner, not through its neighbours and back.
        assert two.overview(1)["connections_passed_on"] == 0
        assert one.overview(2)["connections_passed_on"] == 0
        assert sum(one.overview(each)["connections_passed_on"] for each in (1, 2)) == 16
        assert sum(one.overview(each)["connections_waiting"] for each in (1, 2)) == 0


def test_a_process_that_hangs_keeps_no_client_from_its_machine(
    pair: tuple[Machine, Machine],
) -> None:
    one, two = pair
    _wait_for_standby(one, 2)
    one.ask("cluster.move", name="two", store=2)
    two.wait("standby", "running")
    one.wait("running", "standby")
    pid = one.overview(1)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        two.wait("running")
        # The other process of the machine passes them on.
        assert eventually(lambda: opens(one.amqp())), one.log
    finally:
        os.kill(pid, signal.SIGCONT)
    one.wait("standby")


def test_vhosts_that_are_made_at_the_same_time_are_known_at_once(machine: Machine) -> None:
    api = Api(machine.management_port)

    def made(number: int) -> tuple[int, int]:
        path = f"/api/vhosts/v{number}"
        return api.ask("PUT", path, {}).status, api.ask("GET", path).status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(made, range(24))) == {(201, 200)}
    assert len(api.get("/api/vhosts")) == 25


@pytest.mark.parametrize("command", ["listeners.suspend", "app.stop"])
def test_one_process_does_not_close_what_all_have(machine: Machine, command: str) -> None:
    with pytest.raises(ControlError, match="harebell cluster drain"):
        machine.ask(command)
    assert opens(machine.amqp())


def test_the_health_of_a_machine_is_that_of_all_its_processes(machine: Machine) -> None:
    def asked(store: int, seconds: int = 20) -> tuple[int, str]:
        patience = ["--timeout", str(seconds), "--data-dir", str(machine.data_dir(store))]
        found = subprocess.run(
            [harebell_command(), "health", *patience],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        return found.returncode, found.stdout + found.stderr

    healthy = (0, "healthy: ping, running, alarms, listeners, vhosts\n")
    assert asked(1) == healthy
    second = machine.pids()[1]
    os.kill(second, signal.SIGSTOP)
    reason = f"unhealthy: ping: store 2: the broker on {machine.data_dir(2)} does not answer: "

    def is_named() -> bool:
        code, said = asked(1, seconds=2)
        return code == 1 and said.startswith(reason)

    try:
        # On a busy machine the other process may be as late.
        assert eventually(is_named)
    finally:
        os.kill(second, signal.SIGCONT)
    assert eventually(lambda: asked(1) == healthy)
    assert asked(2) == healthy


def test_a_process_that_ends_is_started_again(machine: Machine) -> None:
    _add_vhost(machine, "far", 2)
    _publish(machine.amqp("far"), b"kept")
    first, second = machine.pids()
    os.kill(second, signal.SIGKILL)
    assert eventually(lambda: len(machine.pids()) == 2 and machine.pids()[1] != second)
    assert eventually(lambda: opens(machine.amqp("far")))
    assert _take(machine.amqp("far")) == b"kept"
    assert machine.pids()[0] == first
    said = "the process of store 2 has ended with code -9, and is started again"
    assert eventually(lambda: said in machine.log), machine.log


def test_sigterm_ends_all_processes_in_good_order(machine: Machine) -> None:
    pids = machine.pids()
    assert machine.member.stop() == 0
    assert not [each for each in pids if os.path.exists(f"/proc/{each}")]


def test_the_processes_end_with_their_supervisor(machine: Machine) -> None:
    pids = machine.pids()
    machine.member.kill()
    assert eventually(lambda: not [each for each in pids if os.path.exists(f"/proc/{each}")])


def test_another_machine_takes_over_all_stores(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    _add_vhost(one, "far", 2)
    _publish(one.amqp(), b"near")
    _publish(one.amqp("far"), b"far")
    one.crash()
    assert eventually(lambda: opens(two.amqp()) and opens(two.amqp("far")))
    assert [_take(two.amqp()), _take(two.amqp("far"))] == [b"near", b"far"]


def test_a_store_moves_alone(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    _add_vhost(one, "far", 2)
    _publish(one.amqp("far"), b"far")
    _wait_for_standby(one, 2)
    one.ask("cluster.move", 2, name="two", store=2)
    two.wait("standby", "running")
    one.wait("running", "standby")
    for machine in pair:
        # Its owner is on one machine, and the client may come to the other one.
        _publish(machine.amqp("far"), b"more")
        _publish(machine.amqp(), b"near")
    assert _take(one.amqp("far")) == b"far"
    # The process of store 2 stands by already: there is nothing that it could give away.
    _wait_for_standby(one, 1)
    one.ask("cluster.drain")
    two.wait("running")
    one.wait("standby")


def test_a_drained_machine_gives_all_its_stores_away(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    for store in one.stores:
        _wait_for_standby(one, store)
    one.ask("cluster.drain")
    two.wait("running")
    one.wait("standby")
    _wait_for_standby(two, 2)
    # All of them stand by: what they have given away is asked for by the process of store 1.
    two.ask("cluster.move", 2, name="one", store=2)
    one.wait("standby", "running")
    _wait_for_standby(one, 2)
    one.ask("cluster.drain")
    two.wait("running")


def test_a_vhost_lives_in_the_store_that_it_is_given(
    postgresql: PostgresServer, database: str, machine: Machine
) -> None:
    for number, store in enumerate((2, 2, 1, 2)):
        machine.ask("vhosts.add", name=f"v{number}", store=store)
    with psycopg.connect(postgresql.url(database)) as link:
        found = dict(link.execute("SELECT name, store FROM harebell.vhost"))
    assert found == {"/": 1, "v0": 2, "v1": 2, "v2": 1, "v3": 2}
    with pytest.raises(ControlError, match="there is no store 3: the cluster has 2"):
        machine.ask("vhosts.add", name="v4", store=3)
    with pytest.raises(ControlError, match="there is a vhost 'v3' already"):
        machine.ask("vhosts.add", name="v3", store=1)
    api = Api(machine.management_port)
    api.done("PUT", "/api/vhosts/v5", {"store": 2})
    api.done("PUT", "/api/vhosts/v5", {"store": 2, "description": "d"})
    assert api.get("/api/vhosts/v5")["store"] == 2
    answer = api.ask("PUT", "/api/vhosts/v5", {"store": 1})
    assert (answer.status, answer.json["reason"]) == (
        400,
        "vhost 'v5' is in store 2, where it stays",
    )
    assert "there is no store 3" in api.ask("PUT", "/api/vhosts/v6", {"store": 3}).json["reason"]


def test_users_and_vhosts_survive_a_new_owner(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    one.ask("users.add", name="kept", password="secret")
    _add_vhost(one, "far", 2)
    one.crash()
    two.wait("running")
    assert {row["name"] for row in two.ask("users.list", 2)} == {"guest", "kept"}
    assert opens(two.amqp("far"))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"load_definitions": __file__}, "load_definitions imports into one store"),
        ({"storage_stores": "65"}, "--storage-stores must be a whole number from 1 to 64"),
    ],
)
def test_options_that_exclude_several_stores_are_refused(
    postgresql: PostgresServer, database: str, settings: dict[str, str], sentence: str
) -> None:
    given = {"storage_stores": 2, "metrics_port": 0, **settings}
    with Member(postgresql.url(database), "one", **given) as member:
        assert member.process.wait(60.0) != 0
        assert sentence in member.log


def test_a_cluster_does_not_lose_a_store_with_vhosts(
    postgresql: PostgresServer, database: str, machine: Machine
) -> None:
    _add_vhost(machine, "far", 2)
    machine.member.stop()
    with Member(postgresql.url(database), "one", metrics_port=0) as member:
        assert member.process.wait(60.0) == 1
        assert "storage_stores is 1, and the vhost 'far' is in store 2" in member.log


def test_machines_with_different_numbers_of_stores_are_found(
    postgresql: PostgresServer, database: str, machine: Machine
) -> None:
    with Machine(postgresql.url(database), "two", stores=3) as other:
        other.wait("standby", "standby", "running")
        said = "storage_stores is 2 here, and broker 'two' serves store 3"
        assert eventually(lambda: said in machine.log), machine.log


def test_a_schema_is_not_in_two_clusters(
    postgresql: PostgresServer, database: str, machine: Machine
) -> None:
    url = postgresql.url(database)
    with Member(url, "two", storage_schema="harebell_2") as member:
        assert member.process.wait(60.0) == 1
        assert "'harebell_2' is store 2 of the cluster with storage_schema 'harebell'" in member.log
    with Member(url, "two", storage_schema="other_2") as alone:
        alone.wait("running")
        flags = {"storage_schema": "other", "storage_stores": 2, "metrics_port": 0}
        with Member(url, "three", **flags) as member:
            assert member.process.wait(60.0) == 1
            assert "'other_2' is store 2 of this cluster, and storage_schema of" in member.log


def test_a_copy_of_one_store_says_where_the_other_vhosts_are(
    postgresql: PostgresServer, database: str, machine: Machine, tmp_path: Path
) -> None:
    url = postgresql.url(database)
    _add_vhost(machine, "far", 2)
    machine.member.stop()

    def copied(name: str, *flags: str) -> str:
        done = subprocess.run(
            [harebell_command(), "store", "copy", url, tmp_path / name, *flags],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    assert "vhosts of other stores were not copied: use --schema harebell_2\n" in copied("one")
    assert "not copied" not in copied("two", "--schema=harebell_2")


def test_a_cluster_port_in_use_is_named(postgresql: PostgresServer, database: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Member(postgresql.url(database), "one", storage_cluster_port=port) as member:
            assert member.process.wait(60.0) == 1
            assert f"storage_cluster_port: 127.0.0.1:{port} cannot be listened on" in member.log
            assert "or to 0 for a free one" in member.log


def test_a_port_in_use_ends_the_start(
    postgresql: PostgresServer, database: str, machine: Machine
) -> None:
    flags = {"storage_stores": 2, "port": machine.member.port}
    with Member(postgresql.url(database), "two", **flags) as other:
        assert other.process.wait(60.0) == 1
        assert "is in use already" in other.log

"""Several workers in one data directory: every door, kills, orderly ends, wrong configurations."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harebell.client.blocking import connect
from harebell.client.errors import AMQPError, ConnectionFailed
from harebell.cluster import stores
from harebell.management.control.client import ControlError, ask_overview
from tests.cluster.certificates import make_certificate
from tests.cluster.workers import EVERYTHING, Workers, publish, take_all, workers
from tests.interop.prometheus import complaints, fetched
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.running import DidNotStart, RunningBroker, asked, command, environment, opens
from tests.unit.management.http.asking import Api
from tests.unit.management.metrics.parsing import Parsed, parse


@pytest.fixture(scope="module")
def both() -> Iterator[Workers]:
    """Two workers with an HTTP API, for tests that end neither."""
    with workers(management_port=free_port()) as found:
        yield found


def harebell(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [command(), *map(str, words)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=SECONDS,
        check=False,
    )


def _api(found: Workers) -> Api:
    return Api(int(found.broker.address("http").rpartition(":")[2]))


def test_each_store_has_a_process_and_all_have_one_port(both: Workers) -> None:
    assert len({*both.pids(), both.broker.pid}) == 3
    publish(both.amqp(), b"here")
    publish(both.amqp("far"), b"there")
    for vhost, store in (("/", 1), ("far", 2)):
        rows = both.ask("queues.list", store, vhost=vhost)
        assert [row["name"] for row in rows] == ["jobs"]
        assert list((both.data_dir(store) / "queues").glob("*/*.seg"))
    assert take_all(both.amqp()) == [b"here"]
    assert take_all(both.amqp("far")) == [b"there"]


def test_vhosts_are_spread_and_listed_together(both: Workers) -> None:
    for number in range(4):
        both.ask("vhosts.add", name=f"spread-{number}")
    names = {f"spread-{number}" for number in range(4)}
    for store in (1, 2):
        assert names <= {row["name"] for row in both.ask("vhosts.list", store)}
    listed = _api(both).get("/api/vhosts")
    assert names <= {row["name"] for row in listed}
    for name in names:
        both.ask("vhosts.delete", name=name)
    assert not names & {row["name"] for row in both.ask("vhosts.list", 2)}


@pytest.mark.parametrize("version", ["amqp", "amqp+0-10"])
def test_clients_of_each_family_reach_both(both: Workers, version: str) -> None:
    for vhost in ("%2F", "far"):
        url = both.amqp(vhost).replace("amqp:", f"{version}:")
        for _ in range(6):
            # Either process may accept it.
            with connect(url) as connection, connection.channel() as channel:
                channel.declare_queue("versions", durable=True)


def test_users_and_permissions_made_at_one_hold_at_the_other(both: Workers) -> None:
    both.ask("users.add", 2, name="alice", password="secret")
    both.ask("permissions.set", 1, user="alice", vhost="far", **EVERYTHING)
    both.ask("permissions.set", 2, user="alice", vhost="/", **EVERYTHING)
    for vhost in ("%2F", "far"):
        assert opens(both.amqp(vhost, "alice:secret"))
        assert not opens(both.amqp(vhost, "alice:wrong"))
    both.ask("users.delete", 2, name="alice")
    for vhost in ("%2F", "far"):
        assert not opens(both.amqp(vhost, "alice:secret"))


def test_a_limit_of_a_user_counts_the_connections_of_both(both: Workers) -> None:
    both.ask("users.add", name="bob", password="secret")
    for vhost in ("/", "far"):
        both.ask("permissions.set", user="bob", vhost=vhost, **EVERYTHING)
    both.ask("limits.set", user="bob", max_connections=1)
    with connect(both.amqp(user="bob:secret")):
        assert eventually(lambda: not opens(both.amqp("far", "bob:secret")))
    assert eventually(lambda: opens(both.amqp("far", "bob:secret")))


def test_definitions_of_both_are_exported_and_imported(both: Workers) -> None:
    publish(both.amqp("far"), queue="exported")
    document = both.ask("definitions.export")
    assert {"/", "far"} <= {row["name"] for row in document["vhosts"]}
    assert ("far", "exported") in {(row["vhost"], row["name"]) for row in document["queues"]}
    both.ask("queues.delete", vhost="far", name="exported")
    both.ask("definitions.import", definitions=document)
    assert "exported" in {row["name"] for row in both.ask("queues.list", 2, vhost="far")}


def test_the_http_api_lists_the_queues_of_both(both: Workers) -> None:
    publish(both.amqp(), queue="listed")
    publish(both.amqp("far"), queue="listed")
    rows = _api(both).get("/api/queues")
    assert {("/", "listed"), ("far", "listed")} <= {(row["vhost"], row["name"]) for row in rows}


def test_the_command_line_answers_for_both(both: Workers) -> None:
    publish(both.amqp("far"), queue="shown")
    done = asked(both.broker, "queues", "list", "--vhost", "far")
    assert "shown" in done.stdout, done.stderr
    status = asked(both.broker, "cluster", "status").stdout
    assert [line.split()[0] for line in status.splitlines()[1:]] == ["1", "2"]


def test_events_of_both_are_published_in_the_first_vhost(both: Workers) -> None:
    with connect(both.amqp()) as connection, connection.channel() as channel:
        queue = channel.declare_queue("", exclusive=True).name
        channel.bind_queue(queue, "amq.rabbitmq.event", "queue.created")
        seen: list[object] = []

        def came() -> bool:
            publish(both.amqp("far"), queue="told")
            both.ask("queues.delete", vhost="far", name="told")
            while (found := channel.get(queue, no_ack=True)) is not None:
                seen.append((found.properties.headers or {}).get("vhost"))
            return "far" in seen

        assert eventually(came)


def test_clients_of_tls_reach_both(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "certificate.pem")
    files = ("--tls-cert", str(certificate), "--tls-key", str(certificate))
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    with workers("--tls-port", "0", *files) as found:
        address = found.broker.address("amqps").rpartition("/")[2]
        for vhost in ("%2F", "far"):
            for _ in range(4):
                # Either process may accept it; its bytes are relayed if that is the other one.
                url = f"amqps://guest:guest@{address}/{vhost}"
                with (
                    connect(url, ssl_context=context) as connection,
                    connection.channel(confirms=True) as channel,
                ):
                    channel.declare_queue("secret", durable=True)
                    channel.publish(b"body" * 50_000, routing_key="secret", delivery_mode=2)
        rows = found.ask("queues.list", vhost="far")
        assert [(row["name"], row["messages"]) for row in rows] == [("secret", 4)]


# --- clients are kept out -------------------------------------------------------------------------


def _refuses(port: int) -> bool:
    """Whether nobody listens at a port; a client is never left waiting."""
    try:
        socket.create_connection(("127.0.0.1", port), SECONDS).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("store", [1, 2])
def test_a_key_that_is_set_at_one_is_set_at_both(both: Workers, store: int) -> None:
    def figures(name: str) -> list[Any]:
        return [ask_overview(both.data_dir(each))[name] for each in (1, 2)]

    before = figures("memory_high_watermark_bytes")
    done = both.ask("config.set", store, key="memory_high_watermark", value="0")
    assert done == {"key": "memory_high_watermark", "value": 0}
    assert figures("memory_alarm") == [True, True]
    # As at the start, each has a part of the memory.
    done = both.ask("config.set", store, key="memory_high_watermark", value="8GiB")
    assert done == {"key": "memory_high_watermark", "value": 8 << 30}
    assert figures("memory_high_watermark_bytes") == [4 << 30, 4 << 30]
    assert both.ask("config.effective", store)["memory_high_watermark"] == 8 << 30
    done = both.ask("config.unset", store, key="memory_high_watermark")
    assert done["value"] == both.ask("config.effective", store)["memory_high_watermark"] == 0.4
    assert figures("memory_high_watermark_bytes") == before
    assert figures("memory_alarm") == [False, False]


@pytest.mark.parametrize("store", [1, 2])
def test_the_configuration_is_shown_as_it_was_given(both: Workers, store: int) -> None:
    done = both.ask("config.set", store, key="log_file", value="other.log")
    assert done["value"] == both.ask("config.effective", store)["log_file"] == "other.log"
    for number, name in ((1, "other.log"), (2, "other-2.log")):
        assert (both.data_dir(number) / "log" / name).exists()
    assert both.ask("config.unset", store, key="log_file")["value"] == "none"
    shown = both.ask("config.effective", store)
    assert shown["log_file"] == "none"
    assert shown["data_dir"] == str(both.broker.data_dir)


def test_the_log_files_of_both_are_opened_anew() -> None:
    with workers(log_file="broker.log") as found:
        logs = [
            found.data_dir(1) / "log" / "broker.log",
            found.data_dir(2) / "log" / "broker-2.log",
        ]
        for each in logs:
            each.rename(each.with_suffix(".old"))
        found.ask("logs.reopen", 2)
        assert eventually(lambda: all(each.exists() for each in logs))


@pytest.mark.parametrize("store", [1, 2])
def test_suspended_listeners_refuse_clients_of_all_workers(both: Workers, store: int) -> None:
    port = both.broker.port
    with connect(both.amqp()) as near, connect(both.amqp("far")) as far:
        both.ask("listeners.suspend", store)
        both.ask("listeners.suspend", 3 - store)
        assert all(_refuses(port) for _ in range(8))
        for each in (1, 2):
            assert ask_overview(both.data_dir(each))["listeners_suspended"]
        for open_before in (near, far):
            with open_before.channel() as channel:
                channel.declare_queue("", exclusive=True)
        # A worker that starts again meanwhile keeps clients out, too.
        both.kill(2)
        assert all(_refuses(port) for _ in range(8))
        with pytest.raises(ControlError, match="the broker is running"):
            both.ask("app.reset")
        both.ask("listeners.resume", store)
        for vhost in ("%2F", "far"):
            assert all(opens(both.amqp(vhost)) for _ in range(8))
        with near.channel() as channel:
            channel.declare_queue("", exclusive=True)
        assert not ask_overview(both.data_dir(2))["listeners_suspended"]


def test_a_stop_of_the_app_is_one_of_all_workers(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "certificate.pem")
    files = ("--tls-cert", str(certificate), "--tls-key", str(certificate))
    metrics = free_port()
    with workers(
        "--tls-port", "0", *files, management_port=free_port(), metrics_port=metrics
    ) as found:
        publish(found.amqp("far"), b"kept")
        ports = [
            int(found.broker.address(each).rpartition(":")[2]) for each in ("amqp", "amqps", "http")
        ]
        with socket.create_connection(("127.0.0.1", found.broker.port)) as client:
            client.sendall(b"AMQP\0\0\x09\x01")
            assert client.recv(1)
            found.ask("app.stop", 2)
            found.ask("app.stop", 1)
            assert all(_refuses(port) for port in ports for _ in range(4))
            client.settimeout(SECONDS)
            while client.recv(4096):
                """Read to its end."""
        for store in (1, 2):
            for asked in ("listeners.resume", "app.reset"):
                with pytest.raises(ControlError):
                    found.ask(asked, store)
        _metrics(metrics)
        found.kill(1)
        assert all(_refuses(port) for port in ports for _ in range(4))
        found.ask("app.start", 1)
        assert take_all(found.amqp("far")) == [b"kept"]
        assert not any(_refuses(port) for port in ports)
        assert _api(found).get("/api/overview")["node"]
        # A start of the whole broker accepts clients.
        found.ask("app.stop")
        data_dir = str(found.broker.data_dir)
        assert found.broker.stop() == 0
        with workers("--data-dir", data_dir) as again:
            assert opens(again.amqp("far"))


def test_a_port_that_was_taken_meanwhile_keeps_all_clients_out() -> None:
    with workers(port=free_port()) as found:
        found.ask("listeners.suspend")
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", found.broker.port))
            other.listen()
            with pytest.raises(ControlError, match="in use"):
                found.ask("listeners.resume", 2)
        assert _refuses(found.broker.port)
        found.ask("listeners.resume", 2)
        assert opens(found.amqp("far"))


# --- metrics --------------------------------------------------------------------------------------


def _metrics(port: int, path: str = "/metrics") -> Parsed:
    status, _, text = fetched(f"http://127.0.0.1:{port}{path}")
    assert status == 200
    assert complaints(text) == []
    return parse(text)


def test_one_port_has_the_metrics_of_both() -> None:
    port = free_port()
    with workers(metrics_port=port) as found:
        publish(found.amqp(), b"here", queue="near")
        publish(found.amqp("far"), b"there", b"too", queue="distant")
        # Either process may answer.
        for _ in range(6):
            sums = _metrics(port)
            assert sums.one("rabbitmq_queue_messages_ready", store="1") == 1
            assert sums.one("rabbitmq_queue_messages_ready", store="2") == 2
            assert len(sums.values("rabbitmq_identity_info")) == 1
            assert len(sums.values("rabbitmq_build_info")) == 1
            assert sums.values("harebell_store_answered") == [1, 1]
            single = _metrics(port, "/metrics/per-object")
            for queue, vhost, store in (("near", "/", "1"), ("distant", "far", "2")):
                labels = {"queue": queue, "vhost": vhost, "store": store}
                assert single.one("rabbitmq_queue_messages_published_total", **labels) > 0
            family = _metrics(port, "/metrics/detailed?family=queue_coarse_metrics&vhost=far")
            name = "rabbitmq_detailed_queue_messages_ready"
            assert family.values(name) == [2] == family.values(name, store="2")
            memory = _metrics(port, "/metrics/memory-breakdown")
            assert all(
                memory.values("rabbitmq_process_resident_memory_bytes", store=each) for each in "12"
            )


def test_metrics_say_which_worker_is_away() -> None:
    port = free_port()
    with workers(metrics_port=port) as found:
        publish(found.amqp(), b"here")
        os.kill(found.pid(2), signal.SIGSTOP)
        # It does not answer, and nobody knows whether it ever will.
        assert eventually(lambda: _metrics(port).values("harebell_store_answered") == [1, 0])
        assert _metrics(port).values("rabbitmq_queues", store="2") == []
        assert _metrics(port).one("rabbitmq_queues", store="1") == 1
        os.kill(_process_of(2, found.broker.data_dir), signal.SIGKILL)
        assert eventually(lambda: _metrics(port).values("harebell_store_answered") == [1, 1])


def test_an_import_says_which_worker_does_not_answer() -> None:
    with workers(management_port=free_port()) as found:
        api = _api(found)
        document = {
            "vhosts": [{"name": "later"}],
            "queues": [{"name": "q", "vhost": "/", "durable": True, "arguments": {}}],
        }
        # Its connection to the other one stays open for the next command.
        found.ask("queues.list", 1)
        os.kill(found.pid(2), signal.SIGSTOP)
        answer = api.ask("POST", "/api/definitions", document)
        assert answer.status == 503
        text = answer.json["reason"]
        assert "the owner of store 2" in text
        assert "nothing was imported" in text
        os.kill(_process_of(2, found.broker.data_dir), signal.SIGCONT)
        assert found.ask("queues.list", 1) == []
        assert "later" not in {row["name"] for row in found.ask("vhosts.list")}
        assert api.ask("POST", "/api/definitions", document).status < 300
        assert [row["name"] for row in found.ask("queues.list", 1)] == ["q"]


def test_a_port_for_metrics_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DidNotStart, match=f"metrics_port: 127.0.0.1:{port} is in use already"):
            RunningBroker("--workers", "2", metrics_port=port)


# --- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [1, 2])
def test_what_is_confirmed_outlives_kills_of_each_worker(store: int) -> None:
    with workers() as found:
        confirmed: dict[str, list[bytes]] = {"%2F": [], "far": []}
        over = threading.Event()

        def fill(vhost: str) -> None:
            number = 0
            while not over.is_set():
                try:
                    with (
                        connect(found.amqp(vhost)) as connection,
                        connection.channel(confirms=True) as channel,
                    ):
                        channel.declare_queue("jobs", durable=True)
                        while not over.is_set():
                            number += 1
                            body = b"%d" % number
                            channel.publish(body, routing_key="jobs", delivery_mode=2)
                            confirmed[vhost].append(body)
                except (AMQPError, OSError):
                    continue

        threads = [threading.Thread(target=fill, args=(vhost,), daemon=True) for vhost in confirmed]
        for each in threads:
            each.start()
        try:
            for _ in range(2):
                counts = {vhost: len(bodies) + 20 for vhost, bodies in confirmed.items()}
                assert eventually(
                    lambda counts=counts: all(  # type: ignore[misc]
                        len(confirmed[vhost]) > count for vhost, count in counts.items()
                    )
                )
                found.kill(store)
        finally:
            over.set()
            for each in threads:
                each.join()
        for vhost, bodies in confirmed.items():
            kept = take_all(found.amqp(vhost))
            assert set(bodies) <= set(kept)
        assert f"the process of store {store} has ended" in found.broker.log


def test_clients_of_the_other_worker_go_on_when_one_is_killed() -> None:
    with workers() as found, ExitStack() as stack:
        clients = [stack.enter_context(connect(found.amqp("far"))) for _ in range(10)]
        found.kill(1)
        for each in clients:
            # Some were accepted by the process that is gone.
            with each.channel() as channel:
                channel.declare_queue("jobs", durable=True)


def test_both_end_with_a_killed_supervisor_and_lose_nothing(tmp_path: Path) -> None:
    home = ("--data-dir", str(tmp_path / "data"))
    with workers(*home) as found:
        pids = found.pids()
        publish(found.amqp("far"), b"kept")
        os.kill(found.broker.pid, signal.SIGKILL)
        found.broker.process.wait()
        assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    with workers(*home) as found:
        assert take_all(found.amqp("far")) == [b"kept"]


def test_sigterm_ends_both_in_good_order(tmp_path: Path) -> None:
    home = ("--data-dir", str(tmp_path / "data"))
    with workers(*home) as found:
        publish(found.amqp("far"), b"kept")
        found.ask("users.add", name="alice", password="secret")
        pids = found.pids()
        assert found.broker.stop() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    with workers(*home) as found:
        assert take_all(found.amqp("far")) == [b"kept"]
        assert "alice" in {row["name"] for row in found.ask("users.list", 2)}
        assert "damage" not in found.broker.log


def test_a_store_that_starts_late_is_waited_for(tmp_path: Path) -> None:
    home = ("--data-dir", str(tmp_path / "data"))
    with workers(*home) as found:
        assert found.broker.stop() == 0
    with workers(*home) as found:
        os.kill(found.pid(2), signal.SIGKILL)

        def published() -> bool:
            try:
                publish(found.amqp("far"), b"late")
            except ConnectionFailed:
                # The process that is killed has accepted it. Nobody says that there is no vhost.
                return False
            return True

        assert eventually(published)
        assert take_all(found.amqp("far")) == [b"late"]


def _process_of(store: int, home: Path) -> int:
    """The process of a store that starts; 0 while there is none."""
    for each in Path("/proc").glob("[0-9]*"):
        try:
            environ = (each / "environ").read_bytes().split(b"\0")
            line = (each / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"%s=%d" % (stores.VARIABLE.encode(), store) in environ and os.fsencode(home) in line:
            return int(each.name)
    return 0


def test_a_worker_that_ends_is_started_again_while_another_one_still_starts(tmp_path: Path) -> None:
    home = tmp_path / "data"
    with ThreadPoolExecutor() as pool:
        log = tmp_path / "broker.log"
        flags = ("--data-dir", str(home), "--log-file", str(log))
        starting = pool.submit(RunningBroker, "--workers", "2", *flags)
        assert eventually(lambda: _process_of(2, home) != 0)
        late = _process_of(2, home)
        os.kill(late, signal.SIGSTOP)
        try:

            def answers() -> int:
                try:
                    return int(ask_overview(home)["pid"])
                except (ControlError, OSError):
                    return 0

            assert eventually(lambda: log.exists() and "startup complete" in log.read_text())
            # It answers after it has reported that it is ready: before, its end would be that of
            # the broker.
            before = answers()
            os.kill(before, signal.SIGKILL)
            assert eventually(lambda: answers() not in (0, before))
            assert not starting.done()
        finally:
            os.kill(late, signal.SIGCONT)
        with starting.result() as broker:
            publish(Workers(broker).amqp(), b"here")
            assert broker.stop() == 0


def test_a_check_and_a_dump_look_at_every_store(tmp_path: Path) -> None:
    home = tmp_path / "data"
    with workers("--data-dir", str(home)) as found:
        publish(found.amqp(), b"near", queue="one")
        publish(found.amqp("far"), b"distant", queue="two")
        assert found.broker.stop() == 0
        check = asked(found.broker, "doctor", "--workers", "2")
        assert "stores" not in check.stdout, check.stdout
        assert "has 2 stores" in asked(found.broker, "doctor").stdout
    check = harebell("store", "check", home)
    assert check.returncode == 0
    assert "'one'" not in check.stderr
    assert all(text in check.stdout for text in ("one", "two", str(home / "stores" / "2")))
    dump = harebell("store", "dump", home).stdout.splitlines()
    assert sorted(json.loads(line)["vhost"] for line in dump) == ["/", "far"]
    segment = next((home / "stores" / "2" / "queues").glob("*/*.seg"))
    data = bytearray(segment.read_bytes())
    data[data.index(b"distant")] ^= 1
    segment.write_bytes(data)
    assert harebell("store", "check", home).returncode == 3
    copied = harebell("store", "copy", home, "postgresql://127.0.0.1/none")
    assert "harebell store join" in copied.stderr


# --- wrong configurations -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--workers", "0"), "--workers must be a whole number from 1 to 64"),
        (("--workers", "2", "--storage-stores", "3"), "leave one of them out"),
        (("--workers", "2", "--durability", "replicated"), "needs storage in PostgreSQL"),
    ],
)
def test_wrong_configurations_are_refused(flags: tuple[str, ...], reason: str) -> None:
    with pytest.raises(DidNotStart, match=reason):
        RunningBroker(*flags)


def _definitions(path: Path, **sections: object) -> tuple[str, str]:
    """Write a file of definitions; returns the flags that load it."""
    path.write_text(json.dumps(sections))
    return "--load-definitions", str(path)


def _vhosts_with_queues(*names: str) -> dict[str, list[dict[str, object]]]:
    user = {"name": "alice", "password": "secret", "tags": "administrator"}
    return {
        "users": [user],
        "vhosts": [{"name": name} for name in names],
        "permissions": [{"user": "alice", "vhost": name, **EVERYTHING} for name in names],
        "queues": [
            {"name": "loaded", "vhost": name, "durable": True, "arguments": {}} for name in names
        ],
        "global_parameters": [{"name": "here", "value": "one"}],
    }


def test_definitions_are_loaded_into_all_stores_before_clients_come(tmp_path: Path) -> None:
    home = ("--data-dir", str(tmp_path / "data"), "--definitions-skip-if-unchanged", "true")
    names = ("/", "a", "b", "c")
    flags = _definitions(tmp_path / "definitions.json", **_vhosts_with_queues(*names))
    with RunningBroker("--workers", "2", *home, *flags) as broker:
        found = Workers(broker)
        rows = found.ask("vhosts.list")
        assert {row["name"]: row["store"] for row in rows} == {"/": 1, "a": 2, "b": 1, "c": 2}
        # The definitions have users, so there is no default one.
        assert [row["name"] for row in found.ask("users.list", 2)] == ["alice"]
        assert found.ask("global-parameters.list")[0]["name"] == "here"
        for name in names:
            url = found.amqp(name.replace("/", "%2F"), "alice:secret")
            publish(url, b"kept", queue="loaded")
        # They are loaded at the start of the broker, and not when one worker starts again.
        found.ask("queues.delete", vhost="a", name="loaded")
        found.kill(2)
        assert found.ask("queues.list", 2, vhost="a") == []
        assert broker.stop() == 0
    with RunningBroker("--workers", "2", *home, *flags) as broker:
        assert broker.log.count("are unchanged, they are not loaded") == 2
        assert Workers(broker).ask("queues.list", 2, vhost="a") == []
        assert broker.stop() == 0
    _definitions(tmp_path / "definitions.json", **_vhosts_with_queues("d", *names))
    with RunningBroker("--workers", "2", *home, *flags) as broker:
        found = Workers(broker)
        assert take_all(found.amqp("b", "alice:secret"), "loaded") == [b"kept"]
        assert [row["name"] for row in found.ask("queues.list", 1, vhost="d")] == ["loaded"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "the definitions are no JSON object"),
        ("{}", "have none of the sections"),
        (
            '{"queues": [{"name": "q", "vhost": "none"}]}',
            "queues: name 'q' in vhost 'none': there is no vhost",
        ),
        ('{"vhosts": [{"name": "a"}, {"name": "b"}, {"name": 3}]}', "vhosts"),
        (
            '{"vhosts": [{"name": "a"}], "permissions": [{"user": "none", "vhost": "a"}]}',
            "permissions.*Object missing required field `configure`",
        ),
    ],
)
def test_wrong_definitions_end_the_start_and_change_nothing(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "definitions.json"
    path.write_text(text)
    home = ("--workers", "2", "--data-dir", str(tmp_path / "data"))
    with pytest.raises(DidNotStart, match=reason) as failed:
        RunningBroker(*home, "--load-definitions", str(path))
    assert "started TCP listener" not in str(failed.value)
    with RunningBroker(*home) as broker:
        assert [row["name"] for row in Workers(broker).ask("vhosts.list")] == ["/"]


def test_a_directory_of_several_stores_is_not_served_as_one(tmp_path: Path) -> None:
    home = ("--data-dir", str(tmp_path / "data"))
    with RunningBroker(*home, "--workers", "2") as broker:
        assert broker.stop() == 0
    with pytest.raises(DidNotStart, match="harebell store join"):
        RunningBroker(*home)


def test_a_directory_of_one_store_is_not_served_as_several(tmp_path: Path) -> None:
    home = ("--data-dir", str(tmp_path / "data"))
    with RunningBroker(*home) as broker:
        assert broker.stop() == 0
    with pytest.raises(DidNotStart, match="harebell store split"):
        RunningBroker(*home, "--workers", "2")
    with RunningBroker(*home) as broker:
        assert broker.stop() == 0

"""The real process, stopped in good order and killed, on the same data directory again."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harebell.client.blocking import connect
from harebell.management.control.client import ask_overview
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.model.peer import call, publish
from tests.patience import SECONDS, eventually
from tests.robustness.lives import life
from tests.robustness.raw import RawClient
from tests.running import RunningBroker, command, environment

KEPT = BasicProperties(delivery_mode=2)
ENDS = [signal.SIGTERM, signal.SIGKILL]


class Client(RawClient):
    """A raw client that knows its broker."""

    def __init__(self, broker: RunningBroker) -> None:
        super().__init__(broker)
        self.broker = broker


@contextmanager
def running(directory: Path, *flags: str, end: signal.Signals = signal.SIGTERM) -> Iterator[Client]:
    """A broker on the directory, a client of it, and the end that the broker meets."""
    broker = RunningBroker("--data-dir", str(directory), *flags)
    try:
        with Client(broker) as client:
            yield client
            if end is signal.SIGKILL:
                broker.stop(end)
        code = broker.stop(end)
        assert code == (0 if end is signal.SIGTERM else -signal.SIGKILL), broker.log
        assert "Traceback" not in broker.log
        assert "quarantine" not in broker.log, broker.log
        assert "octets are missing" not in broker.log, broker.log
    finally:
        broker.process.kill()
        broker.process.wait()
        broker.remove()


def fill(client: Client, queue: str, bodies: list[bytes], properties: BasicProperties) -> None:
    """Publish with confirms, and wait for the last of them."""
    client.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
    client.send(b"".join(publish(1, "", queue, body, properties=properties) for body in bodies))
    seen = 0
    while seen < len(bodies):
        ack = client.until(m.BasicAck).method
        assert isinstance(ack, m.BasicAck)
        seen = ack.delivery_tag


def taken(client: Client, queue: str) -> list[tuple[bytes, bool]]:
    """Everything in a queue, with whether it was marked as redelivered."""
    found = []
    while True:
        client.send(call(1, m.BasicGet(queue=queue, no_ack=True)))
        (event,) = client.collect(lambda events: len(events) == 1)
        if not isinstance(event.method, m.BasicGetOk):
            return found
        found.append((event.body, event.method.redelivered))


@pytest.mark.rule("0-9-1r#066", "0-9-1r#074")
@pytest.mark.parametrize("end", ENDS)
def test_durable_declarations_are_back(end: signal.Signals, tmp_path: Path) -> None:
    with running(tmp_path, end=end) as client:
        arguments = {"alternate-exchange": "rest"}
        client.ask(m.ExchangeDeclare("rest", "fanout", durable=True), m.ExchangeDeclareOk)
        client.ask(
            m.ExchangeDeclare("orders", "topic", durable=True, arguments=arguments),
            m.ExchangeDeclareOk,
        )
        client.ask(m.QueueDeclare("paid", durable=True), m.QueueDeclareOk)
        client.ask(m.QueueDeclare("other", durable=True), m.QueueDeclareOk)
        client.ask(m.QueueDeclare("passing"), m.QueueDeclareOk)
        client.ask(m.QueueBind("paid", "orders", "*.paid", arguments={"a": 1}), m.QueueBindOk)
        client.ask(m.QueueBind("other", "rest"), m.QueueBindOk)
        client.ask(m.QueueDeclare("gone", durable=True), m.QueueDeclareOk)
        client.ask(m.QueueDelete("gone"), m.QueueDeleteOk)
    with running(tmp_path) as client:
        client.send(publish(1, "orders", "eu.paid", b"1") + publish(1, "orders", "odd", b"2"))
        client.ask(
            m.ExchangeDeclare("orders", "topic", durable=True, arguments=arguments),
            m.ExchangeDeclareOk,
        )
        assert taken(client, "paid") == [(b"1", False)]
        assert taken(client, "other") == [(b"2", False)]
        client.ask(m.QueueDeclare("passing", passive=True), m.ChannelClose)
    with running(tmp_path) as client:
        client.ask(m.QueueDeclare("gone", passive=True), m.ChannelClose)


@pytest.mark.parametrize("kind", ["x-consistent-hash", "x-modulus-hash"])
def test_keys_stay_with_their_queues_over_a_restart(kind: str, tmp_path: Path) -> None:
    keys = [f"key-{number}" for number in range(60)]
    queues = ["c", "a", "b"]
    found = []
    for turn in range(2):
        with running(tmp_path, end=signal.SIGKILL) as client:
            for name in queues if turn == 0 else ():
                client.ask(m.ExchangeDeclare("hash", kind, durable=True), m.ExchangeDeclareOk)
                client.ask(m.QueueDeclare(name, durable=True), m.QueueDeclareOk)
                client.ask(m.QueueBind(name, "hash", "2"), m.QueueBindOk)
            client.send(b"".join(publish(1, "hash", key, key.encode()) for key in keys))
            found.append({name: taken(client, name) for name in queues})
    assert found[0] == found[1]
    assert sum(map(len, found[0].values())) == len(keys)
    assert all(found[0].values())


@pytest.mark.rule("0-9-1#003", "0-9-1r#087")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("durability", ["fsync", "interval", "os"])
def test_confirmed_messages_are_back_in_order(
    durability: str, end: signal.Signals, tmp_path: Path
) -> None:
    bodies = [b"%d" % number for number in range(500)]
    with running(tmp_path, "--durability", durability, end=end) as client:
        client.ask(m.QueueDeclare("q", durable=True), m.QueueDeclareOk)
        fill(client, "q", bodies, KEPT)
    with running(tmp_path, "--durability", durability, end=end) as client:
        found = client.ask(m.QueueDeclare("q", passive=True), m.QueueDeclareOk)
        assert found.method == m.QueueDeclareOk("q", 500, 0)
    with running(tmp_path) as client:
        assert [body for body, _ in taken(client, "q")] == bodies


def test_transient_messages_are_gone_and_acknowledged_ones_stay_away(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.ask(m.QueueDeclare("q", durable=True), m.QueueDeclareOk)
        fill(client, "q", [b"kept", b"taken", b"kept too"], KEPT)
        client.send(publish(1, "", "q", b"transient"))
        first = client.ask(m.BasicGet("q"), m.BasicGetOk)
        second = client.ask(m.BasicGet("q"), m.BasicGetOk)
        assert (first.body, second.body) == (b"kept", b"taken")
        assert isinstance(second.method, m.BasicGetOk)
        client.send(call(1, m.BasicAck(second.method.delivery_tag)))
        client.ask(m.BasicQos(0, 1), m.BasicQosOk)
    with running(tmp_path) as client:
        assert taken(client, "q") == [(b"kept", True), (b"kept too", False)]


def test_an_acknowledgement_is_safe_soon_after_it_was_given(tmp_path: Path) -> None:
    with running(tmp_path, end=signal.SIGKILL) as client:
        client.ask(m.QueueDeclare("q", durable=True), m.QueueDeclareOk)
        fill(client, "q", [b"1", b"2"], KEPT)
        assert eventually(lambda: idle(client))
        before = overview(client)["commits"]
        client.ask(m.BasicGet("q", no_ack=True), m.BasicGetOk)
        assert eventually(lambda: overview(client)["commits"] > before)
        assert eventually(lambda: idle(client))
    with running(tmp_path) as client:
        assert [body for body, _ in taken(client, "q")] == [b"2"]


def overview(client: Client) -> dict[str, int]:
    """Figures of the client's broker."""
    return ask_overview(client.broker.data_dir, SECONDS)


def idle(client: Client) -> bool:
    """Whether half a second went by without a commit, in which the broker had time for one."""
    before = overview(client)["commits"]
    # It answers in between: where it stands still for half a second, that is one of many.
    return all(_after_a_moment(client) == before for _ in range(25))


def _after_a_moment(client: Client) -> int:
    time.sleep(0.02)
    return overview(client)["commits"]


@pytest.mark.parametrize("end", ENDS)
def test_failed_deliveries_are_counted_over_the_end_of_the_process(
    end: signal.Signals, tmp_path: Path
) -> None:
    with life(tmp_path) as broker, connect(broker.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("q", durable=True, arguments={"x-queue-type": "quorum"})
        channel.publish(b"failed", routing_key="q")
        for _ in range(2):
            failed = channel.get("q")
            assert failed is not None
            failed.nack(requeue=True)
        channel.publish(b"out", routing_key="q")
        out = [channel.get("q") for _ in range(2)]
        assert [each.body for each in out if each] == [b"failed", b"out"]
        # What was confirmed is on disk, and what had changed before with it.
        channel.publish(b"never delivered", routing_key="q")
        broker.stop(end)
    with life(tmp_path) as broker, connect(broker.address()) as connection:
        channel = connection.channel()
        back = [channel.get("q") for _ in range(3)]
        counts = {
            each.body: (each.properties.headers or {}).get("x-delivery-count", 0)
            for each in back
            if each and each.redelivered
        }
    # A stop ends the channel, which is a failed delivery of all that it had; a crash is none.
    more = end is signal.SIGTERM
    assert counts.pop(b"never delivered", 0) == 0
    assert counts == {b"failed": 2 + more, b"out": 0 + more}


def test_a_transaction_that_was_answered_is_there_as_a_whole(tmp_path: Path) -> None:
    with running(tmp_path, end=signal.SIGKILL) as client:
        client.ask(m.QueueDeclare("q", durable=True), m.QueueDeclareOk)
        client.ask(m.TxSelect(), m.TxSelectOk)
        for number in range(10):
            client.send(publish(1, "", "q", b"%d" % number, properties=KEPT))
        client.ask(m.TxCommit(), m.TxCommitOk)
        client.send(publish(1, "", "q", b"not committed", properties=KEPT))
        client.ask(m.BasicQos(0, 1), m.BasicQosOk)
    with running(tmp_path) as client:
        assert [body for body, _ in taken(client, "q")] == [b"%d" % n for n in range(10)]


def test_the_default_user_of_the_first_start_stays(tmp_path: Path) -> None:
    with running(tmp_path):
        pass
    broker = RunningBroker(
        "--data-dir", str(tmp_path), "--default-user", "late", env={"HAREBELL_DEFAULT_PASS": "x"}
    )
    try:
        with RawClient(broker):
            pass
    finally:
        broker.stop()
        broker.remove()


def test_a_second_broker_on_the_directory_is_refused(tmp_path: Path) -> None:
    with running(tmp_path):
        second = subprocess.run(
            [command(), "serve", "--port", "0", "--data-dir", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env=environment(),
        )
        assert second.returncode == 1
        assert "another broker runs on the data directory" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_strange_database_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "definitions.sqlite").write_bytes(b"my letters\n" * 500)
    tried = subprocess.run(
        [command(), "serve", "--port", "0", "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=environment(),
    )
    assert tried.returncode == 1
    assert tried.stderr.startswith("Error: ")
    assert "definitions.sqlite is damaged" in tried.stderr
    assert (tmp_path / "definitions.sqlite").read_bytes() == b"my letters\n" * 500


def test_everything_in_the_directory_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    with running(tmp_path / "data") as client:
        client.ask(m.QueueDeclare("q", durable=True), m.QueueDeclareOk)
        fill(client, "q", [b"1"], KEPT)
        for directory, _, names in os.walk(tmp_path / "data"):
            assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700, directory
            for name in names:
                # It runs, and may remove a file between the look and the question.
                with suppress(FileNotFoundError):
                    mode = stat.S_IMODE(os.stat(f"{directory}/{name}").st_mode)
                    assert mode & 0o077 == 0, name


def test_less_durability_is_said_in_the_log_and_in_the_status(tmp_path: Path) -> None:
    with running(tmp_path, "--durability", "os") as client:
        assert overview(client)["durability"] == "os"
        assert eventually(lambda: "durability is 'os'" in client.broker.log)


def test_a_disk_below_its_limit_blocks_who_publishes_and_nobody_else(tmp_path: Path) -> None:
    with running(tmp_path, "--disk-free-limit", "1.0") as client:
        client.ask(m.QueueDeclare("q", durable=True), m.QueueDeclareOk)
        assert overview(client)["disk_alarm"] is True
        client.send(publish(1, "", "q", b"1"))
        assert eventually(lambda: overview(client)["blocked_connections"] == 1)
        with RawClient(client.broker) as other:
            # The message that was begun waits, too.
            other.ask(m.BasicGet("q", no_ack=True), m.BasicGetEmpty)

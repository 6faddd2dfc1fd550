"""`harebell dump`: a proxy that prints what passes, and changes nothing of it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harebell.client.blocking import connect
from tests.cli.conftest import Harebell, error_of
from tests.interop.matrix import SPOKEN
from tests.patience import SECONDS
from tests.running import RunningBroker, command, environment


class Dump:
    """A started `harebell dump`."""

    def __init__(self, *flags: str) -> None:
        self.process = subprocess.Popen(
            [command(), "dump", "--port", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        assert self.process.stderr is not None
        first = self.process.stderr.readline().decode()
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)", first)
        assert found is not None, first
        self.port = int(found[1])

    @property
    def url(self) -> str:
        """Its address for a client."""
        return f"amqp://127.0.0.1:{self.port}"

    def end(self) -> tuple[str, str]:
        """What it has written until it ended by itself."""
        out, err = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, err
        return out.decode(), err.decode()


@contextmanager
def dump(broker: RunningBroker, *flags: str) -> Iterator[Dump]:
    """A dump in front of a broker; it ends with its first connection unless flags say otherwise."""
    target = broker.address().rpartition("//")[2]
    started = Dump("--to", target, *(flags or ("--connections", "1")))
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


def seen(text: str) -> list[dict[str, Any]]:
    """The objects of `--json`."""
    return [json.loads(line) for line in text.splitlines()]


def test_dump_prints_methods_contents_and_their_direction(broker: RunningBroker) -> None:
    with dump(broker) as started:
        with connect(started.url) as connection:
            channel = connection.channel()
            channel.declare_queue("dumped", durable=False, auto_delete=True)
            channel.publish(b"hello", routing_key="dumped", headers={"a": 1}, priority=2)
            channel.delete_queue("dumped")
        out, err = started.end()
    assert "> channel 1 queue.declare queue='dumped' auto-delete (" in out
    assert "< channel 1 queue.declare-ok queue='dumped' message-count=0 consumer-count=0" in out
    assert "> channel 1 basic.publish exchange='' routing-key='dumped' (" in out
    assert "> channel 1 content-header basic body-size=5 headers={'a': 1} priority=2" in out
    assert "> channel 1 body 5 octets" in out
    assert "< channel 1 basic.ack delivery-tag=1" in out
    assert "hello" not in out
    assert "#1 opened by 127.0.0.1:" in err


@pytest.mark.parametrize("version", SPOKEN)
def test_every_version_is_read_in_both_directions(broker: RunningBroker, version: str) -> None:
    with dump(broker, "--connections", "1", "--json") as started:
        with connect(started.url, version=version) as connection:
            channel = connection.channel()
            channel.declare_queue("dumped", durable=False, auto_delete=True)
            channel.publish(b"hello", routing_key="dumped", headers={"a": 1})
            channel.delete_queue("dumped")
        out, _ = started.end()
    objects = seen(out)
    assert not [one for one in objects if one["kind"] == "unreadable"]
    assert {one["version"] for one in objects} == {version}
    assert {one["from"] for one in objects} == {"client", "broker"}
    names = {one.get("name") for one in objects}
    expected = {"queue.declare", "queue.delete", "connection.close-ok"}
    if version == "1-0":
        expected = {"sasl-init", "sasl-outcome", "open", "attach", "transfer", "message", "close"}
    assert expected <= names
    assert "guest" not in out


def test_the_password_is_in_no_form_of_the_output(broker: RunningBroker) -> None:
    for flags in ((), ("--json",), ("--raw",), ("--raw", "--json")):
        with dump(broker, "--connections", "1", *flags) as started:
            with connect(started.url):
                pass
            out, _ = started.end()
        assert "connection.start-ok" in out
        assert "*** (12 octets)" in out
        secret = b"\0guest\0guest"
        assert "guest" not in out
        assert secret.hex() not in out
        assert secret.hex(" ") not in out


def test_json_has_an_object_per_frame_and_raw_its_octets(broker: RunningBroker) -> None:
    with dump(broker, "--connections", "1", "--json", "--raw", "--bodies", "3") as started:
        with connect(started.url) as connection:
            connection.channel().publish(b"hello", routing_key="nowhere")
        out, _ = started.end()
    objects = seen(out)
    publish = next(one for one in objects if one.get("name") == "basic.publish")
    assert publish["connection"] == 1
    assert publish["version"] == "0-9-1"
    assert publish["from"] == "client"
    assert publish["channel"] == 1
    assert publish["fields"]["routing-key"] == "nowhere"
    assert bytes.fromhex(publish["raw"])[-9:] == b"\x07nowhere\x00\xce"[-9:]
    assert publish["octets"] == len(publish["raw"]) // 2
    (body,) = [one for one in objects if one["kind"] == "body"]
    assert body["body"] == "hel"


def test_garbage_passes_and_is_only_counted(broker: RunningBroker) -> None:
    with dump(broker) as started:
        with socket.create_connection(("127.0.0.1", started.port)) as plug:
            plug.sendall(b"GET / HTTP/1.1\r\n\r\n")
            plug.settimeout(SECONDS)
            assert plug.recv(8) == b"AMQP\x00\x00\x09\x01"
        out, _ = started.end()
    assert "#1 ? > unreadable it is no AMQP: b'GET / HTTP/1.1" in out


def test_a_large_message_passes_unchanged(broker: RunningBroker) -> None:
    body = bytes(range(256)) * 12_000
    with dump(broker) as started:
        with connect(started.url) as connection:
            channel = connection.channel()
            channel.declare_queue("dumped.large", exclusive=True)
            channel.publish(body, routing_key="dumped.large")
            message = channel.get("dumped.large", no_ack=True)
        started.end()
    assert message is not None
    assert message.body == body


def test_two_connections_at_once_have_their_own_numbers(broker: RunningBroker) -> None:
    with dump(broker, "--connections", "2") as started:
        with connect(started.url), connect(started.url):
            pass
        out, _ = started.end()
    for number in ("#1 ", "#2 "):
        assert any(
            line.startswith(number) and "connection.close-ok" in line for line in out.splitlines()
        )


def test_a_signal_ends_it_with_exit_code_0(broker: RunningBroker) -> None:
    with dump(broker, "--bodies", "0") as started, connect(started.url):
        started.process.send_signal(signal.SIGINT)
        _, err = started.end()
    assert "Traceback" not in err


def test_a_broker_that_is_not_there_is_named(harebell: Harebell) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{nobody.getsockname()[1]}"
        started = Dump("--to", target, "--connections", "1")
        with socket.create_connection(("127.0.0.1", started.port)) as plug:
            plug.settimeout(SECONDS)
            assert plug.recv(1) == b""
        _, err = started.end()
    assert f"#1 cannot reach {target}: " in err


@pytest.mark.parametrize("target", ["localhost", "host:", ":1", "host:x", "host:70000"])
def test_an_address_it_cannot_use_is_a_wrong_usage(harebell: Harebell, target: str) -> None:
    result = harebell("dump", "--port", "0", "--to", target)
    assert result.returncode == 2
    assert "write HOST:PORT" in error_of(result)


def test_a_port_that_is_taken_is_named(harebell: Harebell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = harebell("dump", "--port", str(port))
    assert result.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in error_of(result)

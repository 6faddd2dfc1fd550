"""The log beside that of a real RabbitMQ, after the same has been done to both."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pika
import pytest

from harebell.wire.v09 import methods as m
from tests.cli.conftest import done
from tests.interop.rabbitmq import RabbitNode
from tests.patience import eventually
from tests.running import RunningBroker, running_broker
from tests.unit.server.listening import HEADER, SECONDS, Talker

HEARTBEAT_SECONDS = 1
HANDSHAKE_SECONDS = 6
"""What no handshake of a client that goes on takes, not even with RabbitMQ on a busy machine."""
LINES = re.compile(
    r"\S+ \S+ \[(?P<level>\w+)\] <[\d.]+> (?P<text>(?:accepting|closing|connection|Error|"
    r"Channel error|Created|Successfully|Deleted|Adding|Deleting vhost).*)"
)
ONLY_RABBITMQ = {
    # The end of a connection that was refused is the line of its refusal.
    ("info", "closing AMQP connection PEER"),
    ("info", "closing AMQP connection PEER, vhost: 'none', user: 'guest'"),
}
"""Lines of RabbitMQ without a counterpart."""
VHOST = re.compile(r"(Adding vhost 'v' \(description: '', tags: )(<<>>|\[\])\)")
"""RabbitMQ 3.10 writes no tags as <<>>, later versions as []."""


def lines_of(log: str) -> set[tuple[str, str]]:
    """Levels and texts of a log, without what differs between runs and versions of RabbitMQ."""
    joined = re.sub(r":\n\S+ \S+ \[\w+\] <[\d.]+> +", ": ", log)
    found = set()
    for match in LINES.finditer(joined):
        text = VHOST.sub(r"\1[])", match["text"])
        text = re.sub(r"<\d+\.\d+\.\d+> ", "", text)
        text = re.sub(r"127\.0\.0\.1:\d+ -> 127\.0\.0\.1:\d+", "PEER", text)
        text = re.sub(r", duration: '[^']*'", "", text)
        # RabbitMQ 3.10 has the channel of an error of the connection, and no parentheses in 4.
        text = re.sub(r"(state: running\)), channel \d+", r"\1", text)
        text = re.sub(r"\((PEER[^()]*)\)", r"\1", text)
        text = re.sub(r"handshake_timeout,\w+", "handshake_timeout,STATE", text)
        if match["level"] != "debug":
            found.add((match["level"], text))
    return found


def opened(
    port: int,
    user: str = "guest",
    password: str = "guest",
    vhost: str = "/",
    name: str | None = None,
) -> pika.BlockingConnection:
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "127.0.0.1",
            port,
            vhost,
            pika.PlainCredentials(user, password),
            client_properties={"connection_name": name} if name else None,
        )
    )


def logged_in(port: int, heartbeat: int = 0) -> Talker:
    """A connection that sends no heartbeats by itself."""
    talker = Talker(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
    talker.sock.sendall(HEADER)
    talker.next()
    talker.send(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"))
    talker.next()
    talker.send(m.ConnectionTuneOk(2047, 131072, heartbeat))
    talker.send(m.ConnectionOpen("/"))
    assert isinstance(talker.next(), m.ConnectionOpenOk)
    return talker


def do_with_connections(port: int) -> None:
    opened(port).close()
    opened(port, name="orders of \x1b[31mred").close()
    for user, password, vhost in (
        ("guest", "wrong", "/"),
        ("nobody", "x", "/"),
        ("guest", "guest", "nowhere"),
    ):
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            opened(port, user, password, vhost)
    connection = opened(port)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        connection.channel().queue_declare("missing", passive=True)
    channel = connection.channel()
    channel.queue_declare("mine", exclusive=True)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        channel.queue_declare("mine", exclusive=True, auto_delete=True)
    connection.close()
    silent = logged_in(port, HEARTBEAT_SECONDS)
    abrupt = logged_in(port)
    abrupt.sock.close()
    wrong = logged_in(port)
    wrong.send(m.QueueDeclare("q"), 1)
    assert isinstance(wrong.next(), m.ConnectionClose)
    wrong.send(m.ConnectionCloseOk())
    wrong.sock.close()
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as http:
        http.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert http.recv(8) == HEADER
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as half:
        half.sendall(HEADER)
        half.recv(8)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as slow:
        slow.sendall(HEADER)
        # Read until the broker ends it, after the handshake timeout.
        with suppress(ConnectionResetError):
            while slow.recv(4096):
                pass
    silent.sock.settimeout(SECONDS)
    with suppress(ConnectionResetError):
        while silent.sock.recv(4096):
            pass


def do_on_rabbitmq(node: RabbitNode) -> None:
    node.ctl("add_user", "ann", "topsecret")
    node.ctl("change_password", "ann", "othersecret")
    node.ctl("set_user_tags", "ann", "monitoring", "policymaker")
    node.ctl("add_vhost", "v")
    node.ctl("set_permissions", "-p", "v", "ann", "a.*", "b.*", ".*")
    node.ctl("set_topic_permissions", "-p", "v", "ann", "amq.topic", "^a", "^b")
    node.ctl("set_policy", "-p", "v", "short", "^q", '{"max-length": 5}')
    node.ctl("clear_topic_permissions", "-p", "v", "ann")
    node.ctl("clear_permissions", "-p", "v", "ann")
    node.ctl("delete_user", "ann")
    node.ctl("delete_vhost", "v")


def do_on_harebell(broker: RunningBroker) -> None:
    done(broker, "users", "add", "ann", "topsecret")
    done(broker, "users", "password", "ann", "othersecret")
    done(broker, "users", "tags", "ann", "monitoring", "policymaker")
    done(broker, "vhosts", "add", "v")
    done(broker, "permissions", "set", "ann", "a.*", "b.*", ".*", "--vhost", "v")
    topics = ("ann", "amq.topic", "^a", "^b", "--vhost", "v")
    done(broker, "topic-permissions", "set", *topics)
    done(broker, "policies", "set", "short", "^q", '{"max-length": 5}', "--vhost", "v")
    done(broker, "topic-permissions", "clear", "ann", "--vhost", "v")
    done(broker, "permissions", "clear", "ann", "--vhost", "v")
    done(broker, "users", "delete", "ann")
    done(broker, "vhosts", "delete", "v")


@pytest.fixture(scope="module")
def rabbitmq_log() -> Iterator[str]:
    node = RabbitNode(
        settings=[f"handshake_timeout = {HANDSHAKE_SECONDS * 1000}", "log.file.level = debug"]
    )
    try:
        node.start()
        path: Path = node.home / "log"
        read: Callable[[], str] = lambda: "".join(  # noqa: E731
            each.read_text(errors="replace") for each in path.glob("*.log")
        )
        # The probe of the start is a connection, too.
        assert eventually(lambda: "Server startup complete" in read())
        begin = len(read())
        do_with_connections(node.port)
        do_on_rabbitmq(node)
        assert eventually(lambda: "Deleting vhost 'v'" in read())
        yield read()[begin:]
    finally:
        node.stop()


@pytest.fixture(scope="module")
def harebell_log() -> Iterator[str]:
    flags = ("--handshake-timeout-seconds", str(HANDSHAKE_SECONDS), "--log-level", "debug")
    with running_broker(*flags) as broker:
        do_with_connections(broker.port)
        do_on_harebell(broker)
        assert eventually(lambda: "Deleting vhost 'v'" in broker.log)
        yield broker.log


def test_lines_have_the_levels_and_words_of_rabbitmq(rabbitmq_log: str, harebell_log: str) -> None:
    theirs, ours = lines_of(rabbitmq_log), lines_of(harebell_log)
    assert len(theirs) > 20
    # RabbitMQ writes control characters of names as they are.
    theirs = {(level, text.replace("\x1b", r"\x1b")) for level, text in theirs}
    missing = theirs - ours - ONLY_RABBITMQ
    assert (sorted(missing), sorted(ours - theirs)) == ([], [])


def test_no_log_has_a_password(rabbitmq_log: str, harebell_log: str) -> None:
    assert "secret" not in harebell_log
    assert "topsecret" not in rabbitmq_log

"""Backends of users beside those of a running RabbitMQ: what they ask, and what they allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pika
import pytest

from tests.interop.rabbitmq import RabbitNode
from tests.running import running_broker
from tests.unit.management.backends.authorization_server import AuthorizationServer
from tests.unit.management.backends.web_service import WebService

Work = Callable[[pika.BlockingConnection], list[str]]


@contextmanager
def both(directory: Path, plugin: str, *settings: str) -> Iterator[list[int]]:
    """The ports of both brokers with these lines of `rabbitmq.conf`."""
    path = directory / "rabbitmq.conf"
    path.write_text("\n".join([*settings, ""]))
    node = RabbitNode(settings=settings, plugins=[plugin])
    try:
        node.start()
        with running_broker(env={"HAREBELL_CONFIG": str(path)}) as broker:
            yield [node.port, broker.port]
    finally:
        node.stop()


def outcome(port: int, user: str, password: str, work: Work) -> list[str]:
    """What came of some work: texts of refusals, and "ok"."""
    credentials = pika.PlainCredentials(user, password)
    parameters = pika.ConnectionParameters("127.0.0.1", port, "/", credentials)
    try:
        with pika.BlockingConnection(parameters) as connection:
            return work(connection)
    except pika.exceptions.AMQPConnectionError as error:
        return [str(error)]


def tried(connection: pika.BlockingConnection, step: Callable[[object], object]) -> str:
    """What came of one step on a channel of its own."""
    channel = connection.channel()
    try:
        step(channel)
        # A publish is refused later.
        channel.queue_declare("open")
    except pika.exceptions.ChannelClosedByBroker as error:
        # RabbitMQ 3.10 does not name the permission, as later versions do.
        return re.sub("(configure|write|read) access", "access", str(error.reply_text))
    channel.close()
    return "ok"


STEPS: list[Callable[[object], object]] = [
    lambda channel: channel.exchange_declare("news", "topic"),
    lambda channel: channel.exchange_declare("all", "fanout"),
    lambda channel: channel.queue_declare("q"),
    lambda channel: channel.queue_declare("secret"),
    lambda channel: channel.queue_bind("q", "news", "a.*"),
    lambda channel: channel.queue_bind("q", "all", "x"),
    lambda channel: channel.basic_publish("news", "a.b", b"1"),
    lambda channel: channel.basic_publish("news", "b.b", b"2"),
    lambda channel: channel.basic_publish("all", "b.b", b"3"),
    lambda channel: channel.basic_publish("", "q", b"4"),
    lambda channel: channel.basic_get("q"),
    lambda channel: channel.queue_purge("q"),
    lambda channel: channel.queue_delete("q"),
    lambda channel: channel.exchange_delete("news"),
    lambda channel: channel.exchange_delete("all"),
]


def steps(connection: pika.BlockingConnection) -> list[str]:
    return [tried(connection, step) for step in STEPS]


def refuses_some(path: str, fields: dict[str, str]) -> bool:
    if path == "/auth/topic":
        return fields["routing_key"].startswith("a.")
    return fields.get("name") != "secret"


def asked_once(service: WebService) -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
    return {(method, path, tuple(sorted(fields.items()))) for method, path, fields in service.asked}


@pytest.mark.parametrize("method", ["get", "post"])
def test_both_ask_a_web_service_the_same(tmp_path: Path, method: str) -> None:
    with closing(WebService()) as service:
        service.rule = refuses_some
        settings = ["auth_backends.1 = http", *service.settings(method=method)]
        found = []
        with both(tmp_path, "rabbitmq_auth_backend_http", *settings) as ports:
            for port in ports:
                service.asked.clear()
                came = [outcome(port, "ada", "lovelace", steps)]
                came.append(outcome(port, "ada", "wrong", steps))
                service.passwords["ada"] = ("lovelace", "")
                with suppress(KeyError):
                    came.append(outcome(port, "ada", "lovelace", steps))
                service.passwords["ada"] = ("lovelace", "management")
                found.append((came, asked_once(service)))
    rabbitmq, harebell = found
    assert harebell[0] == rabbitmq[0]
    assert harebell[1] == rabbitmq[1]


SCOPES = [
    "rabbitmq.configure:*/* rabbitmq.write:*/* rabbitmq.read:*/*",
    "rabbitmq.configure:*/* rabbitmq.write:*/*/a.* rabbitmq.read:*/*/*",
    "rabbitmq.configure:%2F/* rabbitmq.write:%2f/* rabbitmq.read:%2F/q",
    "rabbitmq.configure:/*",
    "rabbitmq.configure:*/q rabbitmq.write:*/amq.default",
    "rabbitmq.read:*/*",
    "rabbitmq.read:other/*",
    "configure:*/*",
    "rabbitmq.tag:administrator",
    "rabbitmq.configure:*/*o* rabbitmq.configure:*/n*s",
    "rabbitmq.configure:*/op%65n rabbitmq.write:*/q*/%61.*",
    "",
]


@pytest.fixture(scope="module")
def sites(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[list[int], AuthorizationServer]]:
    directory = tmp_path_factory.mktemp("oauth2")
    with closing(AuthorizationServer()) as server:
        (directory / "rsa.pem").write_bytes(server.pem("rsa"))
        settings = [
            "auth_backends.1 = rabbit_auth_backend_oauth2",
            "auth_oauth2.resource_server_id = rabbitmq",
            f"auth_oauth2.signing_keys.rsa = {directory}/rsa.pem",
            "auth_oauth2.default_key = rsa",
        ]
        with both(directory, "rabbitmq_auth_backend_oauth2", *settings) as ports:
            yield ports, server


@pytest.mark.parametrize("scope", SCOPES)
def test_both_allow_the_same_with_the_scopes_of_a_token(
    sites: tuple[list[int], AuthorizationServer], scope: str
) -> None:
    ports, server = sites
    token = server.token(scope)
    rabbitmq, harebell = (outcome(port, "", token, steps) for port in ports)
    assert harebell == rabbitmq

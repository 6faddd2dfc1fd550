"""Users of a web service of the owner's: `auth_backends.1 = http`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pika
import pytest

from harebell.client.blocking import connect
from harebell.client.errors import AMQPError
from tests.interop.matrix import SPOKEN
from tests.patience import eventually
from tests.ports import free_port
from tests.running import DidNotStart, RunningBroker, running_broker
from tests.unit.management.backends.web_service import WebService
from tests.unit.management.http.asking import Api


@contextmanager
def broker_with(directory: Path, *lines: str) -> Iterator[tuple[RunningBroker, Api]]:
    """A broker with these lines of `rabbitmq.conf`, and its HTTP API."""
    port = free_port()
    path = directory / "rabbitmq.conf"
    path.write_text("\n".join([*lines, f"management.tcp.port = {port}", ""]))
    env = {"HAREBELL_CONFIG": str(path), "HAREBELL_MANAGEMENT_PORT": str(port)}
    with running_broker(env=env) as broker:
        yield broker, Api(port)


@pytest.fixture
def service() -> Iterator[WebService]:
    with closing(WebService()) as found:
        yield found


@pytest.fixture
def site(service: WebService, tmp_path: Path) -> Iterator[tuple[RunningBroker, Api]]:
    with broker_with(tmp_path, "auth_backends.1 = http", *service.settings()) as found:
        yield found


def connected(
    broker: RunningBroker, user: str = "ada", password: str = "lovelace", vhost: str = "/"
) -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(user, password)
    parameters = pika.ConnectionParameters(
        "127.0.0.1",
        broker.port,
        vhost,
        credentials,
        blocked_connection_timeout=30,
    )
    return pika.BlockingConnection(parameters)


def test_the_service_admits_a_user_and_is_asked_with_the_parameters_of_rabbitmq(
    site: tuple[RunningBroker, Api], service: WebService
) -> None:
    broker, _ = site
    with connected(broker) as connection:
        channel = connection.channel()
        channel.exchange_declare("news", "topic")
        channel.queue_declare("q")
        channel.queue_bind("q", "news", "a.*")
        channel.confirm_delivery()
        channel.basic_publish("news", "a.b", b"body", mandatory=True)
        assert channel.basic_get("q", auto_ack=True)[2] == b"body"
    assert service.about("user") == [{"username": "ada", "password": "lovelace"}]
    assert service.about("vhost") == [
        {"username": "ada", "vhost": "/", "ip": "127.0.0.1", "tags": "management"}
    ]
    common = {"username": "ada", "vhost": "/", "tags": "management"}
    resources = service.about("resource")
    assert {**common, "resource": "exchange", "name": "news", "permission": "write"} in resources
    assert {**common, "resource": "queue", "name": "q", "permission": "configure"} in resources
    assert {**common, "resource": "queue", "name": "q", "permission": "read"} in resources
    topic = {
        **common,
        "resource": "topic",
        "name": "news",
        "variable_map.username": "ada",
        "variable_map.vhost": "/",
    }
    assert service.about("topic") == [
        {**topic, "permission": "read", "routing_key": "a.*"},
        {**topic, "permission": "write", "routing_key": "a.b"},
    ]


def test_a_decision_is_asked_for_once_and_a_refusal_each_time(
    site: tuple[RunningBroker, Api], service: WebService
) -> None:
    broker, _ = site
    service.rule = lambda path, fields: not fields.get("name", "").startswith("secret")
    with connected(broker) as connection:
        channel = connection.channel()
        for _ in range(3):
            channel.queue_declare("open")
        for _ in range(2):
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
                channel.queue_declare("secret")
            assert error.value.reply_code == 403
            assert error.value.reply_text == (
                "ACCESS_REFUSED - configure access to queue 'secret' in vhost '/' refused for user "
                "'ada'"
            )
            channel = connection.channel()
    names = [fields["name"] for fields in service.about("resource")]
    assert names == ["open", "secret", "secret"]


def test_publishes_wait_for_the_decision_and_keep_their_order(
    site: tuple[RunningBroker, Api], service: WebService
) -> None:
    broker, _ = site
    service.delay = 0.05
    with connected(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.exchange_declare("x", "fanout")
        channel.queue_bind("q", "x")
        for number in range(200):
            # Two exchanges in turn, and a body in several frames.
            body = b"%d" % number if number % 50 else b"%d " % number + bytes(200_000)
            channel.basic_publish("x" if number % 2 else "", "q", body)
        assert eventually(
            lambda: channel.queue_declare("q", passive=True).method.message_count == 200
        )
        found = [
            int(channel.basic_get("q", auto_ack=True)[2].split()[0].rstrip(b"\0"))
            for _ in range(200)
        ]
    assert found == list(range(200))


def test_a_wrong_password_and_a_refused_vhost_have_the_texts_of_rabbitmq(
    site: tuple[RunningBroker, Api], service: WebService
) -> None:
    broker, _ = site
    with pytest.raises(pika.exceptions.ProbableAuthenticationError) as wrong:
        connected(broker, password="wrong-secret")
    assert "Login was refused using authentication mechanism PLAIN" in str(wrong.value)
    assert eventually(
        lambda: "PLAIN login refused: Denied by the backing HTTP service" in broker.log
    )
    service.rule = lambda path, fields: path != "/auth/vhost"
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError) as closed:
        connected(broker)
    assert "NOT_ALLOWED - access to vhost '/' refused for user 'ada'" in str(closed.value)
    assert "lovelace" not in broker.log
    assert "wrong-secret" not in broker.log


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((500, "allow"), "status 500"),
        ((200, "perhaps"), "bad response 'perhaps'"),
        ((200, ""), "bad response ''"),
        ((200, "allowed"), "bad response 'allowed'"),
        ((302, "allow"), "status 302"),
    ],
)
def test_any_other_answer_is_a_refusal_with_a_line_in_the_log(
    site: tuple[RunningBroker, Api], service: WebService, answer: tuple[int, str], said: str
) -> None:
    broker, _ = site
    with connected(broker) as connection:
        channel = connection.channel()
        service.answer = answer
        with pytest.raises(
            pika.exceptions.ChannelClosedByBroker, match="configure access to queue"
        ):
            channel.queue_declare("q")
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            connected(broker)
    text = (
        "configure access to queue 'q' in vhost '/' refused for user 'ada', backend "
        f"rabbit_auth_backend_http returned an error: {said}"
    )
    assert eventually(lambda: text in broker.log)
    assert eventually(
        lambda: f"rabbit_auth_backend_http failed authenticating ada: {said}" in broker.log
    )
    assert "lovelace" not in broker.log


def test_a_service_that_is_away_refuses_and_one_that_is_back_decides(
    tmp_path: Path, service: WebService
) -> None:
    lines = ["auth_backends.1 = http", *service.settings()]
    away = [line.replace(f":{service.port}/", f":{free_port()}/") for line in lines]
    with broker_with(tmp_path, *away) as (broker, _):
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connected(broker)
        assert eventually(lambda: "failed authenticating ada: Connection refused" in broker.log)


def test_a_service_that_does_not_answer_stops_neither_other_connections_nor_other_logins(
    tmp_path: Path, service: WebService
) -> None:
    lines = ["auth_backends.1 = internal", "auth_backends.2 = http", *service.settings()]
    patience = ["auth_http.request_timeout = 600000", "handshake_timeout = 600000"]
    with (
        broker_with(tmp_path, *lines, *patience) as (broker, _),
        connected(broker, "guest", "guest") as quick,
        ThreadPoolExecutor(10) as pool,
    ):
        channel = quick.channel()
        channel.queue_declare("q")
        service.may_answer.clear()
        try:
            slow = [pool.submit(connected, broker) for _ in range(10)]
            # One after the other, the second would be asked about after an answer only.
            assert eventually(lambda: len(service.about("user")) == 10)
            for _ in range(10):
                channel.queue_declare("q", passive=True)
            assert not any(each.done() for each in slow)
        finally:
            service.may_answer.set()
        for each in slow:
            each.result().close()


def test_a_service_is_waited_for_no_longer_than_its_timeout(
    tmp_path: Path, service: WebService
) -> None:
    lines = ["auth_backends.1 = http", *service.settings(), "auth_http.request_timeout = 500"]
    service.may_answer.clear()
    try:
        with broker_with(tmp_path, *lines, "handshake_timeout = 600000") as (broker, _):
            with pytest.raises(pika.exceptions.ProbableAuthenticationError):
                connected(broker)
            assert eventually(lambda: "failed authenticating ada: timeout" in broker.log)
    finally:
        service.may_answer.set()


def test_passwords_are_sent_in_a_form_where_that_is_configured(
    tmp_path: Path, service: WebService
) -> None:
    lines = ["auth_backends.1 = http", *service.settings(method="post")]
    with broker_with(tmp_path, *lines) as (broker, _), connected(broker) as connection:
        connection.channel().queue_declare("q")
    assert {method for method, _, _ in service.asked} == {"POST"}
    assert service.about("user") == [{"username": "ada", "password": "lovelace"}]


def test_the_http_api_logs_in_users_of_the_service_with_its_tags(
    site: tuple[RunningBroker, Api], service: WebService
) -> None:
    _, api = site
    service.passwords["root"] = ("toor", "administrator monitoring")
    service.passwords["nobody"] = ("x", "")
    who = api.get("/api/whoami", user="ada:lovelace")
    assert (who["name"], who["tags"]) == ("ada", ["management"])
    assert api.ask("GET", "/api/whoami", user="ada:wrong").status == 401
    assert api.ask("GET", "/api/overview", user="nobody:x").status == 401
    assert api.ask("PUT", "/api/vhosts/v", user="root:toor").status == 201
    assert api.ask("PUT", "/api/vhosts/w", user="ada:lovelace").status == 401
    service.rule = lambda path, fields: fields.get("name") != "secret" and fields["vhost"] == "/"
    assert api.ask("PUT", "/api/queues/%2F/q", {}, user="ada:lovelace").status == 201
    refused = api.ask("PUT", "/api/queues/%2F/secret", {}, user="ada:lovelace")
    assert (refused.status, refused.json["reason"]) == (
        401,
        "configure access to queue 'secret' in vhost '/' refused for user 'ada'",
    )
    assert api.ask("GET", "/api/queues/v", user="ada:lovelace").status == 401
    assert [each["name"] for each in api.get("/api/queues", user="ada:lovelace")] == ["q"]


def test_one_backend_authenticates_and_another_authorizes(
    tmp_path: Path, service: WebService
) -> None:
    lines = ["auth_backends.1.authn = http", "auth_backends.1.authz = internal"]
    service.passwords["guest"] = ("other", "")
    with broker_with(tmp_path, *lines, *service.settings()) as (broker, api):
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connected(broker, "guest", "guest")
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            # The service knows this user, and the broker does not.
            connected(broker)
        with connected(broker, "guest", "other") as connection:
            connection.channel().queue_declare("q")
        assert api.get("/api/whoami", user="guest:other")["tags"] == ["administrator"]
    assert service.about("resource") == []


def test_all_backends_that_authorize_have_to_allow(tmp_path: Path, service: WebService) -> None:
    lines = ["auth_backends.1.authn = internal", "auth_backends.1.authz = http"]
    service.passwords["guest"] = ("guest", "")
    service.rule = lambda path, fields: fields.get("name") != "secret"
    with (
        broker_with(tmp_path, *lines, *service.settings()) as (broker, _),
        connected(broker, "guest", "guest") as connection,
    ):
        channel = connection.channel()
        channel.queue_declare("q")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            channel.queue_declare("secret")


def test_the_first_backend_that_accepts_a_user_decides(tmp_path: Path, service: WebService) -> None:
    service.passwords["guest"] = ("other", "")
    service.rule = lambda path, fields: fields.get("name") != "secret"
    lines = ["auth_backends.1 = http", "auth_backends.2 = internal", *service.settings()]
    with broker_with(tmp_path, *lines) as (broker, _):
        with connected(broker, "guest", "guest") as connection:
            connection.channel().queue_declare("secret")
        with connected(broker, "guest", "other") as connection:
            channel = connection.channel()
            with pytest.raises(pika.exceptions.ChannelClosedByBroker):
                channel.queue_declare("secret")


def test_the_cache_asks_once_for_all_connections(tmp_path: Path, service: WebService) -> None:
    lines = [
        "auth_backends.1 = cache",
        "auth_cache.cached_backend = http",
        "auth_cache.cache_ttl = 3600000",
        *service.settings(),
    ]
    service.rule = lambda path, fields: fields.get("name") != "secret"
    with broker_with(tmp_path, *lines) as (broker, _):

        def work() -> None:
            with connected(broker) as connection:
                channel = connection.channel()
                channel.queue_declare("q")
                with pytest.raises(pika.exceptions.ChannelClosedByBroker):
                    channel.queue_declare("secret")

        for _ in range(3):
            work()
        assert len(service.about("user")) == len(service.about("vhost")) == 1
        names = [fields["name"] for fields in service.about("resource")]
        # A refusal is not remembered, unless auth_cache.cache_refusals is true.
        assert sorted(names) == ["q", "secret", "secret", "secret"]
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connected(broker, password="wrong")
        assert len(service.about("user")) == 2


def test_the_cache_asks_again_when_its_time_is_over(tmp_path: Path, service: WebService) -> None:
    lines = [
        "auth_backends.1 = cache",
        "auth_cache.cached_backend = http",
        "auth_cache.cache_ttl = 300",
        *service.settings(),
    ]
    with broker_with(tmp_path, *lines) as (broker, _):

        def asked_again() -> bool:
            connected(broker).close()
            return len(service.about("user")) > 1

        assert eventually(asked_again)


def test_the_cache_remembers_refusals_where_that_is_configured_but_no_failures(
    tmp_path: Path, service: WebService
) -> None:
    lines = [
        "auth_backends.1 = cache",
        "auth_cache.cached_backend = http",
        "auth_cache.cache_refusals = true",
        *service.settings(),
    ]
    with broker_with(tmp_path, *lines) as (broker, _):
        for _ in range(2):
            with pytest.raises(pika.exceptions.ProbableAuthenticationError):
                connected(broker, password="wrong")
        assert len(service.about("user")) == 1
        service.answer = (503, "")
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            connected(broker)
        service.answer = None
        connected(broker).close()


def test_a_cache_without_a_backend_ends_the_start(tmp_path: Path) -> None:
    with (
        pytest.raises(DidNotStart, match="auth_cache_cached_backend is not set"),
        broker_with(tmp_path, "auth_backends.1 = cache"),
    ):
        pass


def test_the_broker_stops_while_a_service_does_not_answer(
    tmp_path: Path, service: WebService
) -> None:
    lines = ["auth_backends.1 = http", *service.settings()]
    # That would end long after the broker has to have stopped.
    lines += ["auth_http.request_timeout = 600000"]
    service.may_answer.clear()
    with (
        broker_with(tmp_path, *lines) as (broker, _),
        socket.create_connection(("127.0.0.1", broker.port)) as link,
    ):
        link.sendall(b"AMQP\x00\x00\x09\x01")
        table = b"\0\0\0\0"
        response = b"\0ada\0lovelace"
        arguments = table + b"\x05PLAIN" + len(response).to_bytes(4) + response + b"\x05en_US"
        payload = b"\x00\x0a\x00\x0b" + arguments
        link.sendall(b"\x01\0\0" + len(payload).to_bytes(4) + payload + b"\xce")
        assert eventually(lambda: len(service.asked) == 1)
        assert broker.stop() == 0
    service.may_answer.set()


@pytest.mark.parametrize("version", SPOKEN)
def test_every_version_of_amqp_waits_for_the_decisions(
    site: tuple[RunningBroker, Api], service: WebService, version: str
) -> None:
    broker, _ = site
    service.delay = 0.02
    service.rule = lambda path, fields: fields.get("name") != "secret"
    user = "ada:lovelace@"
    address = broker.address().replace("amqp://", f"amqp://{user}")
    with connect(address, version=version) as connection:
        channel = connection.channel()
        channel.declare_queue("q")
        channel.declare_exchange("news", "topic")
        channel.bind_queue("q", "news", "#")
        for number in range(60):
            # Two exchanges in turn; each routing key of the topic exchange is asked about.
            exchange, key = ("news", f"k.{number}") if number % 3 == 0 else ("", "q")
            body = b"%d" % number if number % 20 else b"%d " % number + bytes(200_000)
            channel.publish(body, exchange=exchange, routing_key=key)
        found = []

        def gathered() -> bool:
            message = channel.get("q", no_ack=True)
            if message is not None:
                found.append(int(bytes(message.body).split()[0].rstrip(b"\0")))
            return len(found) == 60

        assert eventually(gathered)
        assert found == list(range(60))
        with pytest.raises(AMQPError, match="configure access to queue 'secret'"):
            channel.declare_queue("secret")
    assert len(service.about("topic")) == 21

"""Qpid Proton, below most clients of AMQP 1.0: its blocking Python API."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from proton import Condition, Data, Delivery, Link, Message, Timeout, symbol, ulong
from proton.reactor import (
    AtLeastOnce,
    AtMostOnce,
    DurableSubscription,
    Filter,
    LinkOption,
    Selector,
)
from proton.reactor import Container as ReactorContainer
from proton.utils import (
    BlockingConnection,
    ConnectionClosed,
    LinkDetached,
    SendException,
    SyncRequestResponse,
)

from harebell.client.blocking import connect
from tests.interop.clients.brokers import tls_broker
from tests.interop.clients.conftest import Names
from tests.running import RunningBroker

pytestmark = pytest.mark.interop

_PATIENCE_SECONDS = 60
_SOON_SECONDS = 0.3


@contextmanager
def _connected(broker: RunningBroker, **options: Any) -> Iterator[BlockingConnection]:
    options = {"timeout": _PATIENCE_SECONDS, "allowed_mechs": "PLAIN", **options}
    connection = BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", **options)
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture
def connection(broker: RunningBroker) -> Iterator[BlockingConnection]:
    with _connected(broker) as opened:
        yield opened


def _declare(broker: RunningBroker, queue: str, **options: Any) -> None:
    with connect(broker.url) as declaring:
        declaring.channel().declare_queue(queue, durable=True, **options)


@pytest.fixture
def queue(broker: RunningBroker, name: Names) -> str:
    """The address of a durable queue."""
    own = name("proton")
    _declare(broker, own)
    return f"/queues/{own}"


def _waiting(broker: RunningBroker, address: str) -> int:
    """How many messages wait in a queue."""
    with connect(broker.url) as counting:
        queue = address.removeprefix("/queues/")
        found: int = counting.channel().declare_queue(queue, passive=True).message_count
        return found


# --- messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"octets",
        "text",
        True,
        7,
        1.5,
        {"n": 1, "nested": [1, "two", None, {"three": b"3"}]},
        [1, 2, 3],
        uuid.UUID(int=5),
    ],
    ids=repr,
)
def test_a_body_comes_back_as_it_was_sent(
    connection: BlockingConnection, queue: str, body: Any
) -> None:
    connection.create_sender(queue).send(Message(body=body, inferred=isinstance(body, bytes)))
    receiver = connection.create_receiver(queue)
    # A body of octets is a view of its message.
    got = receiver.receive()
    assert (bytes(got.body) if isinstance(got.body, memoryview) else got.body) == body
    receiver.accept()


@pytest.mark.parametrize("number", ["text", ulong(7), uuid.UUID(int=9), b"octets"], ids=repr)
def test_properties_come_back_in_their_types(
    connection: BlockingConnection, queue: str, number: Any
) -> None:
    sent = Message(
        body="x",
        id=number,
        correlation_id=number,
        subject="subject",
        address="/elsewhere",
        reply_to="/queues/r",
        content_type="application/x-own",
        content_encoding="gzip",
        creation_time=1.5,
        expiry_time=9_999_999_999.0,
        group_id="group",
        group_sequence=5,
        reply_to_group_id="reply group",
        user_id=b"guest",
        durable=True,
        priority=7,
        properties={"a": 1, "b": "text", "c": True, "d": None},
        annotations={symbol("x-opt-own"): "kept"},
    )
    connection.create_sender(queue).send(sent)
    receiver = connection.create_receiver(queue)
    got = receiver.receive()
    for field in (
        *("id", "correlation_id", "subject", "address", "reply_to", "content_type"),
        *("content_encoding", "creation_time", "expiry_time", "group_id", "group_sequence"),
        *("reply_to_group_id", "durable", "priority", "properties"),
    ):
        assert getattr(got, field) == getattr(sent, field), field
    assert isinstance(got.id, memoryview) or type(got.id) in (type(number), int)
    assert bytes(got.user_id) == b"guest"
    assert got.annotations[symbol("x-opt-own")] == "kept"
    assert (got.first_acquirer, got.delivery_count) == (True, 0)


def test_a_large_message_comes_in_small_frames(broker: RunningBroker, queue: str) -> None:
    body = bytes(range(256)) * 8_192
    with _connected(broker, max_frame_size=1_024) as small:
        small.create_sender(queue).send(Message(body=body, inferred=True))
        receiver = small.create_receiver(queue)
        got = receiver.receive()
        assert bytes(got.body) == body
        receiver.accept()


def test_many_messages_come_in_order(connection: BlockingConnection, queue: str) -> None:
    sender = connection.create_sender(queue, options=AtMostOnce())
    for number in range(3_000):
        sender.send(Message(id=number, body="x"))
    receiver = connection.create_receiver(queue, credit=100)
    for number in range(3_000):
        assert receiver.receive().id == number
        receiver.accept()


# --- outcomes -----------------------------------------------------------------------------------


def test_a_released_message_comes_again(
    broker: RunningBroker, connection: BlockingConnection, queue: str
) -> None:
    connection.create_sender(queue).send(Message(body="x"))
    receiver = connection.create_receiver(queue, credit=1)
    assert receiver.receive().first_acquirer
    # Proton's second way is `modified`, without delivery-failed.
    for delivered in (False, True):
        receiver.release(delivered=delivered)
        again = receiver.receive()
        assert (again.delivery_count, again.first_acquirer) == (0, False)
    receiver.accept()
    receiver.close()
    assert _waiting(broker, queue) == 0


def test_a_rejected_message_is_dead_lettered(
    broker: RunningBroker, connection: BlockingConnection, name: Names
) -> None:
    dead, own = name("dead"), name("proton")
    _declare(broker, dead)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    _declare(broker, own, arguments=arguments)
    connection.create_sender(f"/queues/{own}").send(Message(body="bad", subject="s"))
    receiver = connection.create_receiver(f"/queues/{own}")
    receiver.receive()
    receiver.reject()
    got = connection.create_receiver(f"/queues/{dead}").receive()
    assert (got.body, got.subject) == ("bad", "s")
    (death,) = got.annotations[symbol("x-opt-deaths")]
    assert (death["queue"], death["reason"], death["count"]) == (own, "rejected", 1)


def test_a_message_without_a_queue_is_released(connection: BlockingConnection) -> None:
    sender = connection.create_sender("/exchanges/amq.direct/nowhere")
    with pytest.raises(SendException) as refused:
        sender.send(Message(body="x"))
    assert refused.value.state == Delivery.RELEASED


def test_a_full_queue_rejects(
    broker: RunningBroker, connection: BlockingConnection, name: Names
) -> None:
    own = name("full")
    _declare(broker, own, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    sender = connection.create_sender(f"/queues/{own}")
    sender.send(Message(body="first"))
    with pytest.raises(SendException) as refused:
        sender.send(Message(body="second"))
    assert refused.value.state == Delivery.REJECTED


def test_what_is_not_accepted_comes_again_after_a_detach(
    broker: RunningBroker, connection: BlockingConnection, queue: str
) -> None:
    connection.create_sender(queue).send(Message(body="x"))
    receiver = connection.create_receiver(queue)
    receiver.receive()
    receiver.close()
    with _connected(broker) as other:
        got = other.create_receiver(queue).receive()
        assert (got.body, got.first_acquirer) == ("x", False)


def test_a_settled_delivery_is_gone(
    broker: RunningBroker, connection: BlockingConnection, queue: str
) -> None:
    connection.create_sender(queue).send(Message(body="x"))
    receiver = connection.create_receiver(queue, options=AtMostOnce())
    assert receiver.receive().body == "x"
    receiver.close()
    assert _waiting(broker, queue) == 0


# --- nodes --------------------------------------------------------------------------------------


def test_a_request_gets_its_reply(broker: RunningBroker, queue: str) -> None:
    with _connected(broker) as serving, _connected(broker) as asking:
        requests = serving.create_receiver(queue)
        answers = serving.create_sender(None)
        receiver = asking.create_receiver(None, dynamic=True)
        reply_to = receiver.link.remote_source.address
        asking.create_sender(queue).send(Message(body="ask", reply_to=reply_to, id="7"))
        request = requests.receive()
        answers.send(Message(body="told", address=request.reply_to, correlation_id=request.id))
        got = receiver.receive()
        assert (got.body, got.correlation_id) == ("told", "7")


def test_a_synchronous_request_gets_its_answer(broker: RunningBroker, queue: str) -> None:
    def serve() -> None:
        with _connected(broker) as serving:
            requests = serving.create_receiver(queue)
            asked = requests.receive()
            told = Message(
                address=asked.reply_to, body=asked.body.upper(), correlation_id=asked.correlation_id
            )
            requests.accept()
            serving.create_sender(None).send(told)

    with _connected(broker) as asking, ThreadPoolExecutor(1) as threads:
        serving = threads.submit(serve)
        assert SyncRequestResponse(asking, queue).call(Message(body="hello")).body == "HELLO"
        serving.result(_PATIENCE_SECONDS)


def test_a_queue_that_is_missing_is_named(connection: BlockingConnection) -> None:
    with pytest.raises(LinkDetached, match="no queue 'none' in vhost '/'") as refused:
        connection.create_receiver("/queues/none")
    assert refused.value.condition == "amqp:not-found"
    with pytest.raises(LinkDetached, match="no exchange 'none' in vhost '/'"):
        connection.create_sender("/exchanges/none/key")


class _Stream(LinkOption):
    """A stream from its first message."""

    def apply(self, link: Link) -> None:
        spec = {symbol("rabbitmq:stream-offset-spec"): "first"}
        Filter(spec).apply(link)

    def test(self, link: Link) -> bool:
        return bool(link.is_receiver)


def test_a_stream_is_read_by_everybody_from_its_first_message(
    broker: RunningBroker, connection: BlockingConnection, name: Names
) -> None:
    own = name("stream")
    _declare(broker, own, arguments={"x-queue-type": "stream"})
    sender = connection.create_sender(f"/queues/{own}")
    for number in range(10):
        sender.send(Message(id=number, body="x"))
    for _ in range(2):
        receiver = connection.create_receiver(f"/queues/{own}", credit=5, options=[_Stream()])
        for number in range(10):
            got = receiver.receive()
            receiver.accept()
            assert (got.id, got.annotations[symbol("x-stream-offset")]) == (number, number)
        receiver.close()


def test_an_empty_queue_lets_a_receiver_wait(connection: BlockingConnection, queue: str) -> None:
    receiver = connection.create_receiver(queue)
    with pytest.raises(Timeout):
        receiver.receive(timeout=_SOON_SECONDS)


# --- connections --------------------------------------------------------------------------------


def test_a_wrong_password_is_refused(broker: RunningBroker) -> None:
    with pytest.raises(Exception, match=r"(?i)auth"):
        BlockingConnection(
            f"amqp://guest:wrong@127.0.0.1:{broker.port}",
            timeout=_PATIENCE_SECONDS,
            allowed_mechs="PLAIN",
        )


def test_the_virtual_host_is_in_the_host_name(broker: RunningBroker) -> None:
    with _connected(broker, virtual_host="vhost:/") as opened:
        assert opened.conn.remote_properties[symbol("product")] == "RabbitMQ"
    with (
        pytest.raises(ConnectionClosed, match="none"),
        _connected(broker, virtual_host="vhost:none"),
    ):
        pass


def test_anonymous_is_the_user_guest(broker: RunningBroker, queue: str) -> None:
    with _connected(broker, allowed_mechs="ANONYMOUS") as opened:
        opened.create_sender(queue, options=AtLeastOnce()).send(Message(body="x"))


def test_messages_pass_over_tls(tmp_path_factory: pytest.TempPathFactory) -> None:
    from proton import SSLDomain

    with tls_broker(tmp_path_factory.mktemp("tls")) as (broker, certificate, port):
        _declare(broker, "tls")
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(str(certificate))
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
        url = f"amqps://guest:guest@127.0.0.1:{port}"
        opened = BlockingConnection(url, _PATIENCE_SECONDS, ssl_domain=domain)
        opened.create_sender("/queues/tls").send(Message(body="x"))
        assert opened.create_receiver("/queues/tls").receive().body == "x"
        opened.close()


# --- names and subscriptions --------------------------------------------------------------------


class _Shared(LinkOption):
    """The options of JMS clients for a shared subscription to a topic."""

    def apply(self, link: Link) -> None:
        capabilities = link.source.capabilities
        capabilities.put_array(False, Data.SYMBOL)
        capabilities.enter()
        for capability in ("topic", "shared"):
            capabilities.put_symbol(symbol(capability))
        capabilities.exit()


class _Container(ReactorContainer):
    """A container with a name of its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.container_id = name


def _container(broker: RunningBroker, name: str) -> Any:
    return _connected(broker, container=_Container(name))


def test_a_durable_subscription_gets_what_came_while_its_link_was_detached(
    broker: RunningBroker, name: Names
) -> None:
    container, topic = name("container"), f"/topic/{name('news')}"
    for each in range(2):
        with _container(broker, container) as connection:
            options = [DurableSubscription()]
            receiver = connection.create_receiver(topic, name="sub", options=options)
            if each:
                assert receiver.receive(_PATIENCE_SECONDS).body == "while away"
                receiver.accept()
                receiver.close()
            else:
                receiver.detach()
                connection.create_sender(topic).send(Message("while away"))
    # A closed detach has ended it: no queue is left.
    with _container(broker, container) as connection, pytest.raises(SendException):
        connection.create_sender(topic).send(Message("for none"))


def test_a_durable_subscription_with_a_selector_keeps_only_what_it_selects(
    broker: RunningBroker, name: Names
) -> None:
    container, topic = name("container"), f"/topic/{name('news')}"
    for each in range(2):
        with _container(broker, container) as connection:
            options = [DurableSubscription(), Selector("colour = 'red'")]
            receiver = connection.create_receiver(topic, name="sub", options=options)
            if each:
                assert receiver.receive(_PATIENCE_SECONDS).body == "red"
                receiver.accept()
                receiver.close()
            else:
                receiver.detach()
                sender = connection.create_sender(topic)
                sender.send(Message("red", properties={"colour": "red"}))
                # It matches no binding.
                with pytest.raises(SendException):
                    sender.send(Message("blue", properties={"colour": "blue"}))


def test_a_shared_subscription_gives_each_message_to_one_of_its_links(
    broker: RunningBroker, name: Names
) -> None:
    topic = f"/topic/{name('news')}"
    with _container(broker, name("container")) as connection:
        receivers = [
            connection.create_receiver(topic, name=link, credit=5, options=[_Shared()])
            for link in ("sub|1", "sub|2")
        ]
        sender = connection.create_sender(topic)
        for body in ("0", "1"):
            sender.send(Message(body))
        assert sorted(each.receive(_PATIENCE_SECONDS).body for each in receivers) == ["0", "1"]


def test_a_link_that_is_attached_again_is_taken_over(
    broker: RunningBroker, name: Names, queue: str
) -> None:
    container = name("container")
    with _container(broker, container) as first, _container(broker, container) as second:
        taken = first.create_receiver(queue, name="link")
        second.create_receiver(queue, name="link")
        with pytest.raises(LinkDetached, match="amqp:link:stolen"):
            taken.receive(_PATIENCE_SECONDS)


# --- outcomes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_annotations_of_modified_come_back_with_the_message(
    broker: RunningBroker, connection: BlockingConnection, name: Names, kind: str
) -> None:
    own = name("proton")
    _declare(broker, own, arguments={"x-queue-type": kind})
    connection.create_sender(f"/queues/{own}").send(
        Message(body="x", annotations={symbol("x-opt-kept"): 1})
    )
    receiver = connection.create_receiver(f"/queues/{own}")
    assert receiver.receive().delivery_count == 0
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.local.failed = True
    delivery.local.annotations = {symbol("x-opt-tried"): "once", symbol("x-opt-number"): ulong(7)}
    delivery.update(Delivery.MODIFIED)
    delivery.settle()
    again = receiver.receive()
    assert again.annotations[symbol("x-opt-kept")] == 1
    assert again.annotations[symbol("x-opt-tried")] == "once"
    number = again.annotations[symbol("x-opt-number")]
    assert (number, type(number)) == (7, ulong)
    assert again.delivery_count == 1
    receiver.accept()


def test_the_condition_of_rejected_is_in_the_history_of_the_dead_letter(
    broker: RunningBroker, connection: BlockingConnection, name: Names
) -> None:
    own, dead = name("proton"), name("dead")
    _declare(broker, dead)
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    _declare(broker, own, arguments=letters)
    connection.create_sender(f"/queues/{own}").send(Message(body="x"))
    receiver = connection.create_receiver(f"/queues/{own}")
    receiver.receive()
    delivery = receiver.fetcher.unsettled.popleft()
    delivery.local.condition = Condition("app:no-customer", "customer 7 does not exist")
    delivery.update(Delivery.REJECTED)
    delivery.settle()
    other = connection.create_receiver(f"/queues/{dead}")
    [death] = other.receive().annotations[symbol("x-opt-deaths")]
    assert death[symbol("reason")] == "rejected"
    assert death[symbol("condition")] == "app:no-customer"
    assert death[symbol("description")] == "customer 7 does not exist"
    other.accept()

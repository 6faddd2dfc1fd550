"""Property filters of a source, as RabbitMQ has them since 4.1, and here on every kind of queue."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.methods import QueueDeclare, QueueDeclareOk
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import encode_sections
from harebell.wire.v1.values import Byte, Described, Int, Symbol, Timestamp, UInt, ULong
from tests.conformance.raw import Peer
from tests.conformance.v1.raw import Peer1
from tests.conformance.v1.test_consuming import expect_bodies

PROPERTIES = Symbol("amqp:properties-filter")
APPLICATION = Symbol("amqp:application-properties-filter")
NOW = Timestamp(1_700_000_000_123)
WHOLE = c.Properties(
    message_id=ULong(999),
    user_id=b"guest",
    to="/exchanges/some%20exchange/routing%20key",
    subject="🐇",
    reply_to="/queues/some%20queue",
    correlation_id="corr-123",
    content_type=Symbol("text/plain"),
    content_encoding=Symbol("some encoding"),
    absolute_expiry_time=Timestamp(NOW + 100_000),
    creation_time=NOW,
    group_id="my group ID",
    group_sequence=UInt(0xFFFF_FFFF),
    reply_to_group_id="other group ID",
)


def _symbols(**fields: Any) -> dict[Symbol, Any]:
    return {Symbol(name.replace("_", "-")): value for name, value in fields.items()}


def _publish(peer1: Peer1, queue: str, *messages: tuple[c.Properties | None, Any]) -> None:
    """Publish messages with the bodies 1, 2, ..."""
    peer1.attach_sender(f"/queues/{queue}", 0)
    for number, (properties, application) in enumerate(messages, 1):
        sections = encode_sections(properties=properties, application_properties=application)
        peer1.transfer(0, b"%d" % number, sections=sections)
        peer1.expect(c.Disposition)


def _read(peer1: Peer1, queue: str, *filters: tuple[Any, Any]) -> dict[Any, Any] | None:
    """Read a queue with filters by a new link; return those that are in force."""
    given = {Symbol(str(name)): Described(name, value) for name, value in filters}
    source = c.Source(f"/queues/{queue}", filter=given, distribution_mode=Symbol("copy"))
    answer = peer1.attach_receiver("", 1, source=source, credit=20)
    found: dict[Any, Any] | None = answer.source.filter
    return found


def _leave(peer1: Peer1) -> None:
    peer1.quiet()
    peer1.send(c.Detach(1, True))
    peer1.expect(c.Detach, handle=1, closed=True)


@pytest.fixture(params=["classic", "quorum", "stream"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def queue(peer: Peer, name: str, kind: str) -> str:
    peer.send(QueueDeclare(queue=name, durable=True, arguments={"x-queue-type": kind}))
    peer.expect(QueueDeclareOk)
    return name


@pytest.fixture
def classic(peer: Peer, name: str) -> str:
    peer.send(QueueDeclare(queue=name, durable=True))
    peer.expect(QueueDeclareOk)
    return name


FIRST = (Symbol("rabbitmq:stream-offset-spec"), "first")


@pytest.mark.parametrize("descriptor", [PROPERTIES, ULong(0x173)], ids=str)
def test_every_property_can_be_asked_for(queue: str, peer1: Peer1, descriptor: Any) -> None:
    _publish(peer1, queue, (WHOLE, None), (None, None), (c.Properties(group_id="my group ID"), {}))
    fields = {name: getattr(WHOLE, name) for name in WHOLE.__struct_fields__}
    in_force = _read(peer1, queue, FIRST, (descriptor, _symbols(**fields)))
    assert in_force is not None
    assert in_force[Symbol(str(descriptor))].value == _symbols(**fields)
    expect_bodies(peer1, b"1")
    _leave(peer1)
    _read(peer1, queue, FIRST, (descriptor, _symbols(group_id="my group ID")))
    expect_bodies(peer1, b"1", b"3")
    _leave(peer1)
    _read(peer1, queue, FIRST, (descriptor, _symbols(group_id="no match")))
    _leave(peer1)


@pytest.mark.parametrize(
    "message_id",
    [UUID(int=7), b"\x01\x02", "x" * 300, "it's", ULong(2**63 - 1)],
    ids=["uuid", "binary", "long", "quote", "ulong"],
)
@pytest.mark.parametrize("field", ["message_id", "correlation_id"])
def test_an_id_of_every_type_is_compared(
    classic: str, peer1: Peer1, field: str, message_id: Any
) -> None:
    _publish(peer1, classic, (c.Properties(**{field: message_id}), None), (None, None))
    _read(peer1, classic, (PROPERTIES, _symbols(**{field: message_id})))
    expect_bodies(peer1, b"1")
    peer1.quiet()


@pytest.mark.parametrize("descriptor", [APPLICATION, ULong(0x174)], ids=str)
def test_application_properties_of_every_type_are_compared(
    queue: str, peer1: Peer1, descriptor: Any
) -> None:
    several = {"k1": Int(-2), "k2": 10, "k3": False, "k4": True, "k5": "hey"}
    others: tuple[Any, ...] = ({"k2": 10.1}, None, {"k2": 10.0})
    _publish(peer1, queue, (None, several), *((None, each) for each in others))
    for wanted, bodies in (
        ({"k5": Symbol("no match")}, ()),
        ({"k1": Int(-2), "k5": Symbol("hey"), "k4": True, "k3": False}, (b"1",)),
        # Numbers of different types are equal if their values are.
        ({"k2": UInt(10)}, (b"1", b"4")),
        # Nothing matches everything that is there.
        ({"k2": None}, (b"1", b"2", b"4")),
    ):
        assert _read(peer1, queue, FIRST, (descriptor, wanted))
        expect_bodies(peer1, *bodies)
        _leave(peer1)


def test_filters_of_both_sections_have_to_match(queue: str, peer1: Peer1) -> None:
    subject = c.Properties(subject="The Subject")
    _publish(peer1, queue, (subject, None), (None, {"The Key": -123}), (subject, {"The Key": -123}))
    of_properties = (PROPERTIES, _symbols(subject="The Subject"))
    of_application = (APPLICATION, {"The Key": Byte(-123)})
    selector = (Symbol("amqp:sql-filter"), "properties.subject = 'other' OR [The Key] < 0")
    for filters, bodies in (
        ([of_properties], (b"1", b"3")),
        ([of_application], (b"2", b"3")),
        ([of_properties, of_application], (b"3",)),
        ([of_properties, selector], (b"3",)),
    ):
        assert len(_read(peer1, queue, FIRST, *filters) or ()) == 1 + len(filters)
        expect_bodies(peer1, *bodies)
        _leave(peer1)


def test_texts_are_selected_by_their_beginning_and_their_end(queue: str, peer1: Peer1) -> None:
    texts = c.Properties(
        to="abc 1", reply_to="abc 2", subject="abc 3", group_id="abc 4", message_id="abc 6",
        reply_to_group_id="abc 5", correlation_id="abc 7", group_sequence=UInt(0xFFFF_FFFF),
    )  # fmt: skip
    _publish(
        peer1,
        queue,
        (texts, {"k1": "abc 8", "k2": "a_c%9"}),
        (None, {"k1": "abc", "k2": "abcd9"}),
        (c.Properties(subject="&Hello", reply_to_group_id="xyz 5"), None),
    )
    parts = _symbols(
        to="&p:abc ", reply_to="&p:abc", subject="&p:ab", group_id="&p:a", message_id="&p:abc 6",
        reply_to_group_id="&s:5", correlation_id="&s:abc 7",
    )  # fmt: skip
    application = {"k1": "&s: 8", "k2": "&p:a_c%"}
    for filters, bodies in (
        ([(PROPERTIES, parts), (APPLICATION, application)], (b"1",)),
        ([(PROPERTIES, parts | _symbols(subject="&s:xxxxxxxxxx"))], ()),
        ([(PROPERTIES, _symbols(reply_to_group_id="&s: 5"))], (b"1", b"3")),
        ([(PROPERTIES, _symbols(subject="&&Hello"))], (b"3",)),
        ([(APPLICATION, {"k2": "&s:9"})], (b"1", b"2")),
        ([(APPLICATION, {"k2": "&p:a_"})], (b"1",)),
    ):
        assert len(_read(peer1, queue, FIRST, *filters) or ()) == 1 + len(filters)
        expect_bodies(peer1, *bodies)
        _leave(peer1)


@pytest.mark.parametrize(
    "wrong",
    [
        (PROPERTIES, _symbols(group_id=UInt(3))),
        (PROPERTIES, _symbols(subject="&Hello")),
        (PROPERTIES, _symbols(priority=UInt(3))),
        (PROPERTIES, {"subject": "text"}),
        (PROPERTIES, {}),
        (PROPERTIES, "subject"),
        (APPLICATION, {Symbol("k2"): UInt(10)}),
        (APPLICATION, {str(number): UInt(1) for number in range(17)}),
        (APPLICATION, {"k": float("nan")}),
        (APPLICATION, {"k": ["a"]}),
        (APPLICATION, {"k": "&p:" + "x" * 300}),
    ],
    ids=lambda wrong: str(wrong)[:60],
)
def test_a_wrong_filter_is_not_in_force(classic: str, peer1: Peer1, wrong: tuple[Any, Any]) -> None:
    _publish(peer1, classic, (WHOLE, None), (None, None))
    assert _read(peer1, classic, FIRST, wrong) == {FIRST[0]: Described(*FIRST)}
    expect_bodies(peer1, b"1", b"2")


def test_a_link_says_that_it_has_filters(queue: str, peer1: Peer1) -> None:
    answer = peer1.attach_receiver(f"/queues/{queue}", 1)
    names = {"AMQP_FILTEX_PROP_V1_0", "AMQP_FILTEX_SQL_V1_0"}
    assert set(answer.offered_capabilities) == names


def test_what_other_versions_publish_is_filtered_too(queue: str, peer: Peer, peer1: Peer1) -> None:
    for number in range(3):
        properties = BasicProperties(
            type=f"t{number}", message_id=f"m{number}", headers={"n": number}
        )
        peer.publish("", queue, b"%d" % number, properties)
    assert peer.count(queue) == 3
    _read(
        peer1, queue, FIRST, (PROPERTIES, _symbols(message_id="m1")), (APPLICATION, {"n": UInt(1)})
    )
    expect_bodies(peer1, b"1")
    peer1.quiet()

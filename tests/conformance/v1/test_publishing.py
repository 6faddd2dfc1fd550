"""Links by which the broker receives: outcomes, credit, messages in parts."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.limits import LINK_CREDIT
from harebell.wire.v09.methods import (
    ExchangeDeclare,
    ExchangeDeclareOk,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)
from harebell.wire.v1 import composites as c
from harebell.wire.v1.encoding import encode
from harebell.wire.v1.sections import data_section, encode_sections, value_section
from harebell.wire.v1.values import Array, Symbol, ULong
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1

ACCEPTED, RELEASED = c.Accepted(), c.Released()


# --- outcomes -----------------------------------------------------------------------------------


@pytest.mark.rule("1.0#099", "1.0#110")
def test_the_outcomes_of_a_turn_are_one_disposition(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.attach_sender(f"/queues/{queue}", 1)
    octets = b""
    sent, peer1.wire.write = peer1.wire.write, lambda data: None  # type: ignore[method-assign]
    collected: list[bytes] = []
    peer1.wire.write = collected.append  # type: ignore[method-assign,assignment]
    for number in range(6):
        peer1.transfer(number % 2, b"x")
    peer1.wire.write = sent  # type: ignore[method-assign]
    octets = b"".join(collected)
    peer1.send_bytes(octets)
    first = 0
    while first < 6:
        # One over a socket as well, unless the octets came in two pieces.
        found = peer1.expect(c.Disposition, role=True, first=first, settled=True, state=ACCEPTED)
        first = (found.first if found.last is None else found.last) + 1
    peer1.quiet()


def test_a_settled_delivery_has_no_outcome(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    peer1.transfer(0, b"x", settled=True)
    peer1.quiet()
    number = peer1.transfer(0, b"y")
    peer1.expect(c.Disposition, first=number, last=number)


def test_a_message_that_no_queue_gets_is_released(peer: Peer, peer1: Peer1, name: str) -> None:
    peer.send(ExchangeDeclare(exchange=name, type="direct"))
    peer.expect(ExchangeDeclareOk)
    peer1.attach_sender(f"/exchanges/{name}/nowhere")
    peer1.transfer(0, b"x")
    peer1.expect(c.Disposition, first=0, settled=True, state=RELEASED)
    peer1.transfer(0, b"x", settled=True)
    peer1.quiet()


@pytest.mark.parametrize("transacted", [False, True])
def test_a_duplicate_is_accepted_though_no_queue_gets_it(
    peer: Peer, queue: str, peer1: Peer1, name: str, transacted: bool
) -> None:
    peer.send(
        ExchangeDeclare(
            exchange=name, type="x-message-deduplication", arguments={"x-cache-size": 5}
        )
    )
    peer.expect(ExchangeDeclareOk)
    peer.send(QueueBind(queue=queue, exchange=name))
    peer.expect(QueueBindOk)
    peer1.attach_sender(f"/exchanges/{name}")
    state = None
    if transacted:
        peer1.attach_sender(None, 1, target=c.Coordinator())
        number = peer1.transfer_payload(1, value_section(c.Declare()))
        declared = peer1.expect(c.Disposition, first=number).state
        state = c.TransactionalState(declared.txn_id)
    sections = encode_sections(application_properties={"x-deduplication-header": "a"})
    for header in (c.Header(durable=True), c.Header()):
        octets = encode_sections(header) + sections
        peer1.transfer(0, b"x", sections=octets, state=state if not header.durable else None)
        found = peer1.expect(c.Disposition, settled=True).state
        assert (found.outcome if transacted and not header.durable else found) == ACCEPTED
    peer.send(QueueDeclare(queue=queue, passive=True))
    assert peer.expect(QueueDeclareOk).message_count == 1


def test_a_full_queue_rejects(peer: Peer, peer1: Peer1, name: str) -> None:
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    peer.send(QueueDeclare(queue=name, arguments=arguments))
    peer.expect(QueueDeclareOk)
    peer1.attach_sender(f"/queues/{name}")
    peer1.transfer(0, b"x")
    peer1.expect(c.Disposition, first=0, state=ACCEPTED)
    peer1.transfer(0, b"y")
    state = peer1.expect(c.Disposition, first=1, settled=True).state
    assert state.error.condition == "amqp:resource-limit-exceeded"
    assert state.error.description == f"queue '{name}' exceeded maximum length"
    assert state.error.info == {"queue": name, "reason": "maxlen"}


def test_every_queue_of_a_fanout_gets_a_message(peer: Peer, peer1: Peer1, name: str) -> None:
    peer.send(ExchangeDeclare(exchange=name, type="fanout"))
    peer.expect(ExchangeDeclareOk)
    for number in range(3):
        peer.send(QueueDeclare(queue=f"{name}-{number}"))
        peer.expect(QueueDeclareOk)
        peer.send(QueueBind(queue=f"{name}-{number}", exchange=name))
        peer.expect(QueueBindOk)
    peer1.attach_sender(f"/exchanges/{name}")
    peer1.transfer(0, b"x")
    peer1.expect(c.Disposition, first=0, last=0, state=ACCEPTED)
    for number in range(3):
        peer1.attach_receiver(f"/queues/{name}-{number}", 1 + number, credit=1)
        peer1.expect_transfer(handle=1 + number)
    peer.send(QueueDelete(queue=f"{name}-0"))
    peer.expect(QueueDeleteOk)
    peer1.expect_error(c.Detach, "amqp:resource-deleted")


def test_a_durable_message_is_accepted_when_it_is_on_disk() -> None:
    from tests.unit.front.amqp_0_9_1.world import World
    from tests.unit.front.amqp_1_0.peer import LinkPeer

    world = World(slow=True)
    peer = LinkPeer(world).open()
    peer.attach("/queue/q", durable=2)
    world.commit()
    peer.taken()
    assert peer.publish(b"x", durable=True) == []
    assert peer.publish(b"y", durable=True) == []
    world.commit()
    assert peer.taken() == [c.Disposition(True, 0, 1, True, ACCEPTED)]


@pytest.mark.rule("1.0#108")
def test_batchable_is_a_hint(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    for _ in range(2):
        number = peer1.transfer(0, b"x", batchable=True)
        peer1.expect(c.Disposition, first=number, settled=True, state=ACCEPTED)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=2)
    peer1.expect_transfer(delivery_id=0)
    peer1.expect_transfer(delivery_id=1)
    peer1.send(c.Disposition(True, 0, 1, False, ACCEPTED, True))
    peer1.expect(c.Disposition, first=0, last=1, settled=True, state=ACCEPTED)


@pytest.mark.rule("1.0#136")
def test_a_message_id_makes_no_message_a_duplicate(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    for _ in range(2):
        number = peer1.transfer(0, b"x", sections=c.Properties(message_id="same").encoded())
        peer1.expect(c.Disposition, first=number, state=ACCEPTED)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=9)
    for _ in range(2):
        peer1.expect_transfer()


# --- where a message goes -----------------------------------------------------------------------


def _bound(peer: Peer, exchange: str, queue: str, key: str) -> None:
    peer.send(QueueDeclare(queue=queue))
    peer.expect(QueueDeclareOk)
    peer.send(QueueBind(queue=queue, exchange=exchange, routing_key=key))
    peer.expect(QueueBindOk)


LONG = "k" * 256


@pytest.mark.parametrize(
    ("address", "properties"),
    [
        ("/exchange/amq.topic", c.Properties(subject=LONG)),
        ("/queue", c.Properties(subject=LONG)),
        (None, c.Properties(to=f"/exchanges/amq.topic/{LONG}")),
        (None, c.Properties(to="/exchange/amq.topic", subject=LONG)),
        (None, c.Properties(to=f"/queues/{LONG}")),
    ],
)
def test_a_routing_key_that_no_other_version_could_carry(
    connect1: Connect1, peer: Peer, name: str, address: str | None, properties: c.Properties
) -> None:
    peer.send(QueueDeclare(queue=name, durable=True))
    peer.expect(QueueDeclareOk)
    peer.send(QueueBind(queue=name, exchange="amq.topic", routing_key="#"))
    peer.expect(QueueBindOk)
    peer1 = connect1().open().begin()
    peer1.attach_sender(address)
    number = peer1.transfer(0, b"x", sections=properties.encoded())
    words = "the routing key has 256 bytes, at most 255 are allowed"
    if address is None:
        state = peer1.expect(c.Disposition, first=number, settled=True).state
        assert state.error.condition == "amqp:precondition-failed"
        assert words in state.error.description
    else:
        peer1.expect_error(c.Detach, "amqp:precondition-failed", words)
        peer1.send(c.Detach(0, True))
    # What does fit arrives.
    peer1.attach_sender("/exchanges/amq.topic/" + LONG[:255], 1)
    peer1.transfer(1, b"y")
    peer1.expect(c.Disposition, state=ACCEPTED)


def test_a_target_with_a_routing_key_that_is_too_long(peer1: Peer1) -> None:
    asked = c.Attach("long", 0, source=c.Source(), target=c.Target(f"/exchanges/amq.topic/{LONG}"))
    words = "the routing key has 256 bytes"
    peer1.expect_refused(asked, "amqp:precondition-failed", words)


@pytest.mark.rule("1.0#184")
@pytest.mark.parametrize(
    ("address", "subject"),
    [
        ("/exchanges/amq.direct/k%2F{name}", None),
        ("/exchanges/amq%2Edirect/k%2f{name}", "other"),
        ("/exchange/amq.direct/k%2F{name}", "other"),
        ("/exchange/amq.direct", "k/{name}"),
        (None, None),
    ],
)
def test_an_address_or_to_and_subject_name_exchange_and_routing_key(
    peer: Peer, peer1: Peer1, name: str, address: str | None, subject: str | None
) -> None:
    _bound(peer, "amq.direct", name, f"k/{name}")
    peer1.attach_sender(address and address.format(name=name))
    fields = c.Properties(
        to=None if address else f"/exchanges/amq.direct/k%2F{name}",
        subject=subject and subject.format(name=name),
    )
    peer1.transfer(0, b"x", sections=fields.encoded())
    peer1.expect(c.Disposition, state=ACCEPTED)
    peer1.attach_receiver(f"/queues/{name}", credit=1)
    payload = peer1.expect_transfer().payload
    assert encode(Symbol("x-exchange")) + encode("amq.direct") in payload
    assert encode(Symbol("x-routing-key")) + encode(f"k/{name}") in payload


@pytest.mark.rule("1.0#185")
@pytest.mark.parametrize(
    ("fields", "condition", "text"),
    [
        (None, "amqp:precondition-failed", "anonymous terminus requires 'to' address to be set"),
        (c.Properties(to="/nothing"), "amqp:precondition-failed", "bad 'to' address string"),
        (c.Properties(to="/exchanges/none/k"), "amqp:not-found", "no exchange 'none' in vhost"),
    ],
)
def test_an_anonymous_link_rejects_a_message_with_a_wrong_address(
    queue: str, peer1: Peer1, fields: c.Properties | None, condition: str, text: str
) -> None:
    peer1.attach_sender(None)
    sections = b"" if fields is None else fields.encoded()
    peer1.transfer(0, b"x", sections=sections)
    error = peer1.expect(c.Disposition, first=0, settled=True).state.error
    assert error.condition == condition
    assert text in error.description
    # No credit is lost, and the link goes on.
    peer1.transfer(0, b"x", sections=c.Properties(to=f"/queues/{queue}").encoded())
    peer1.expect(c.Disposition, first=1, state=ACCEPTED)
    peer1.transfer(0, b"x", sections=sections, settled=True)
    error = peer1.expect_error(c.Detach, condition, text)
    assert error.info == {"delivery-tag": (2).to_bytes(4)}
    peer1.send(c.Detach(0, True))


@pytest.mark.rule("1.0#137")
def test_a_user_id_has_to_be_that_of_the_publisher(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    peer1.transfer(0, b"x", sections=c.Properties(user_id=b"guest").encoded())
    peer1.expect(c.Disposition, state=ACCEPTED)
    peer1.transfer(0, b"x", sections=c.Properties(user_id=b"other").encoded())
    words = "user_id property set to 'other' but authenticated user was 'guest'"
    peer1.expect_error(c.Detach, "amqp:unauthorized-access", words)
    peer1.send(c.Detach(0, True))


def test_x_cc_names_further_routing_keys(peer: Peer, queue: str, peer1: Peer1, name: str) -> None:
    other = f"{name}-other"
    peer.send(QueueDeclare(queue=other))
    peer.expect(QueueDeclareOk)
    peer1.attach_sender(f"/queues/{queue}")
    sections = encode_sections(message_annotations={"x-cc": [other, queue]})
    peer1.transfer(0, b"x", sections=sections)
    peer1.expect(c.Disposition, state=ACCEPTED)
    for handle, each in ((1, queue), (2, other)):
        peer1.attach_receiver(f"/queues/{each}", handle, credit=2)
        peer1.expect_transfer(handle=handle)


@pytest.mark.parametrize("keys", ["q", ["q", Symbol("q")], Array(0xA1, ["q"])])
@pytest.mark.parametrize("settled", [True, False])
def test_further_routing_keys_are_a_list_of_strings(
    queue: str, peer1: Peer1, keys: object, settled: bool
) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    sections = encode_sections(message_annotations={"x-cc": keys})
    number = peer1.transfer(0, b"x", sections=sections, settled=settled)
    if not settled:
        peer1.expect(c.Disposition, first=number, settled=True, state=RELEASED)
    words = "bad value for 'x-cc' message-annotation"
    peer1.expect_error(c.Detach, "amqp:invalid-field", words)
    peer1.send(c.Detach(0, True))


# --- credit -------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#087", "1.0#084", "1.0#059")
@pytest.mark.parametrize("first", [0, 7, (1 << 32) - 3])
def test_the_sender_says_where_its_deliveries_begin(queue: str, peer1: Peer1, first: int) -> None:
    asked = c.Attach(
        "s",
        0,
        False,
        source=c.Source(),
        target=c.Target(f"/queues/{queue}"),
        initial_delivery_count=first,
    )
    peer1.send(asked)
    # The count is known from the attach on: no flow says another one, or none.
    peer1.expect(c.Attach, handle=0)
    peer1.expect(c.Flow, handle=0, delivery_count=first, link_credit=LINK_CREDIT)
    for _ in range(5):
        peer1.transfer(0, b"x", settled=True)
    count = (first + 5) % (1 << 32)
    peer1.send(c.Flow(0, 100, 5, 100, 0, count, 9, echo=True))
    peer1.expect(c.Flow, handle=0, delivery_count=count, link_credit=LINK_CREDIT - 5)


@pytest.mark.rule("1.0#076", "1.0#080", "1.0#096")
def test_credit_is_renewed_at_half(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    for _ in range(LINK_CREDIT // 2):
        peer1.transfer(0, b"", settled=True)
    flow = peer1.expect(c.Flow, handle=0, link_credit=LINK_CREDIT)
    assert flow.delivery_count == LINK_CREDIT // 2
    peer1.quiet()


@pytest.mark.rule("1.0#079")
def test_a_delivery_without_credit_detaches_the_link(
    memory: MemorySite, memory1: Connect1, name: str
) -> None:
    peer = memory1().open().begin()
    peer.attach_sender(f"/queue/{name}")
    session = next(iter(memory.registry.connections)).channels[0]
    session.links[0].credit = 0
    peer.transfer(0, b"x")
    peer.expect_error(c.Detach, "amqp:link:transfer-limit-exceeded", "without link-credit")
    # What crosses the detach is dropped.
    peer.transfer(0, b"x")
    peer.give(0, 1)
    peer.send(c.Detach(0, True))
    peer.quiet()


@pytest.mark.rule("1.0#082")
def test_echo_is_answered_with_the_state_of_the_link(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    peer1.transfer(0, b"x", settled=True)
    peer1.send(c.Flow(0, 100, 1, 100, 0, 1, echo=True))
    peer1.expect(c.Flow, handle=0, delivery_count=1, link_credit=LINK_CREDIT - 1)


# --- parts --------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#104", "1.0#097", "1.0#102")
def test_a_message_in_parts_may_have_others_between_them(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.attach_sender(f"/queues/{queue}", 2)
    payload = data_section(b"abcdef")
    peer1.transfer_payload(0, payload[:2], more=True)
    peer1.transfer(2, b"between", delivery_id=1)
    peer1.expect(c.Disposition, first=1)
    nothing = {"delivery_id": None, "delivery_tag": None, "message_format": None}
    peer1.transfer_payload(0, payload[2:7], more=True, **nothing)
    peer1.transfer_payload(0, payload[7:], delivery_id=0, delivery_tag=bytes(4))
    peer1.expect(c.Disposition, first=0, state=ACCEPTED)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=2)
    assert peer1.expect_transfer().payload.endswith(b"between")
    assert peer1.expect_transfer().payload.endswith(b"abcdef")


_LONG = data_section(b"z" * 300)
_SECTIONS = encode_sections(
    c.Header(durable=True), {"x-a": "b"}, c.Properties(subject="s"), {"k": "v" * 300}
)


@pytest.mark.rule("1.0#104", "1.0#097")
@pytest.mark.parametrize(
    "message",
    [
        _LONG,
        _SECTIONS + _LONG,
        _SECTIONS + _LONG + _LONG,
        _SECTIONS + data_section(b"x") + _LONG,
        _SECTIONS + _LONG + b"\0\x53\x78\xc1\1\0",
        _SECTIONS + value_section("v" * 300),
        # Not encoded as short as can be: it stays what it is.
        _SECTIONS + b"\0\x53\x75\xb0\0\0\0\3abc",
    ],
)
def test_a_message_is_the_same_wherever_it_is_cut(
    memory1: Connect1, memory: MemorySite, message: bytes
) -> None:
    peer1 = memory1().open().begin()
    memory.broker.vhosts["/"].declare_queue("cut")
    peer1.attach_sender("/queues/cut")
    peer1.attach_receiver("/queues/cut", 1, credit=1_000, snd_settle_mode=1)
    peer1.transfer_payload(0, message, settled=True)
    whole = peer1.expect_transfer().payload
    for cut in (*range(0, len(message), 7), *range(len(message) - 9, len(message) + 1)):
        part = {"delivery_id": None, "delivery_tag": None, "message_format": None}
        peer1.transfer_payload(0, message[:cut], more=True, settled=True)
        peer1.transfer_payload(0, message[cut : cut + 11], more=True, **part)
        peer1.transfer_payload(0, message[cut + 11 :], **part)
        peer1.deliveries += 1
        assert peer1.expect_transfer().payload == whole


@pytest.mark.rule("1.0#104")
@pytest.mark.parametrize("size", [299, 301])
def test_a_data_section_with_a_wrong_size_is_refused_in_parts_too(
    queue: str, peer1: Peer1, size: int
) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    message = b"\0\x53\x75\xb0" + size.to_bytes(4) + b"z" * 300
    peer1.transfer_payload(0, message[:50], more=True)
    peer1.transfer_payload(0, message[50:], delivery_id=0, delivery_tag=bytes(4))
    peer1.expect_error(c.Detach, "amqp:decode-error", "failed to parse message")
    peer1.send(c.Detach(0, True))


def test_the_body_of_a_large_message_is_gathered_apart(memory1: Connect1) -> None:
    # Cut out of the whole message at its end it would be copied in one turn.
    peer1 = memory1().open().begin()
    peer1.attach_sender("/queue/large")
    body = bytes(range(256)) * 400
    message = _SECTIONS + data_section(body)
    peer1.transfer_payload(0, message[:1_000], more=True)
    connection: Any = peer1.wire.connection  # type: ignore[attr-defined]
    delivery = connection.channels[0].links[0].partial
    delivery.add(message[1_000:])
    before, content = delivery.take()
    assert content == body
    assert before == _SECTIONS + data_section(b"")


@pytest.mark.rule("1.0#105")
def test_an_aborted_delivery_is_dropped(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.transfer_payload(0, data_section(b"abc"), more=True)
    peer1.transfer_payload(0, b"rest", aborted=True, delivery_id=None, delivery_tag=None)
    peer1.transfer_payload(0, data_section(b"abc"), aborted=True, delivery_id=1)
    peer1.transfer(0, b"next", delivery_id=2)
    peer1.expect(c.Disposition, first=2, last=2)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=2)
    assert peer1.expect_transfer().payload.endswith(b"next")


@pytest.mark.rule("1.0#098")
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"delivery_id": 7}, "delivery-id (7)"),
        ({"delivery_tag": b"other"}, "delivery-tag"),
        ({"message_format": 3}, "message-format"),
    ],
)
def test_a_part_that_says_otherwise_than_the_first_is_refused(
    queue: str, peer1: Peer1, changes: dict[str, object], text: str
) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    peer1.transfer_payload(0, data_section(b"abc"), more=True)
    peer1.transfer_payload(0, b"", **changes)
    peer1.expect_error(c.Detach, "amqp:invalid-field", text)
    peer1.send(c.Detach(0, True))
    peer1.quiet()


@pytest.mark.rule("1.0#103")
@pytest.mark.parametrize(("mode", "settled"), [(0, True), (1, False), (1, None)])
def test_a_settled_flag_against_the_mode_of_the_link_is_refused(
    queue: str, peer1: Peer1, mode: int, settled: bool | None
) -> None:
    peer1.attach_sender(f"/queues/{queue}", snd_settle_mode=mode)
    peer1.transfer(0, b"x", settled=settled)
    words = ("'unsettled'", "'true'") if settled else ("'settled'", "'false'")
    text = "sender settle mode is {} but transfer settled flag is interpreted as being {}"
    peer1.expect_error(c.Detach, "amqp:invalid-field", text.format(*words))
    peer1.send(c.Detach(0, True))


def test_the_settled_flag_of_a_later_part_counts(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", snd_settle_mode=1)
    peer1.transfer_payload(0, data_section(b"x"), more=True)
    peer1.transfer_payload(0, b"", delivery_id=0, settled=True)
    peer1.quiet()


@pytest.mark.rule("1.0#106")
@pytest.mark.parametrize("parts", [1, 2])
def test_a_transfer_is_not_settled_second_on_a_link_that_is_not(
    queue: str, peer1: Peer1, parts: int
) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.transfer(0, b"x", rcv_settle_mode=0)
    peer1.expect(c.Disposition, first=0, state=ACCEPTED)
    if parts == 2:
        peer1.transfer_payload(0, data_section(b"x")[:2], more=True)
        peer1.transfer_payload(0, data_section(b"x")[2:], delivery_id=1, rcv_settle_mode=1)
    else:
        peer1.transfer(0, b"x", rcv_settle_mode=1)
    peer1.expect_error(c.Detach, "amqp:invalid-field", "rcv-settle-mode is second on a link")
    peer1.send(c.Detach(0, True))


@pytest.mark.rule("1.0#101")
def test_a_message_format_that_is_not_known(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    peer1.transfer(0, b"x", message_format=0x80013700)
    peer1.expect_error(c.Detach, "amqp:not-implemented", "message-format 0x80013700")
    peer1.send(c.Detach(0, True))


@pytest.mark.rule("1.0#091")
def test_a_message_that_is_too_large(memory1: Connect1, memory: MemorySite, name: str) -> None:
    peer = memory1().open().begin()
    memory.settings.message_max = 100
    for connection in memory.registry.connections:
        connection.message_max = 100
    assert peer.attach_sender(f"/queue/{name}", 0).max_message_size == 100
    peer.transfer(0, bytes(98))
    peer.expect(c.Disposition)
    peer.transfer(0, bytes(101))
    words = "> maximum message size (100 bytes)"
    peer.expect_error(c.Detach, "amqp:link:message-size-exceeded", words)
    peer.send(c.Detach(0, True))
    peer.attach_sender(f"/queue/{name}", 1)
    peer.transfer_payload(1, data_section(bytes(200))[:90], more=True)
    peer.transfer_payload(1, bytes(50), delivery_id=peer.deliveries, more=True)
    peer.expect_error(c.Detach, "amqp:link:message-size-exceeded", words)
    peer.send(c.Detach(1, True))
    peer.quiet()


@pytest.mark.rule("1.0#123", "1.0#124")
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        c.Properties(to="x").encoded(),
        data_section(b"x") + c.Properties(to="x").encoded(),
        value_section(1) + value_section(2),
        value_section(1) + data_section(b"x"),
        b"\0\x53\x99\xa0\0",
        b"\0\x53\x75\xa0\x05x",
    ],
)
def test_a_message_that_is_malformed(queue: str, peer1: Peer1, payload: bytes) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    peer1.transfer_payload(0, payload)
    peer1.expect_error(c.Detach, "amqp:decode-error", "failed to parse message")
    peer1.send(c.Detach(0, True))


def test_a_transfer_in_the_wrong_direction_ends_the_session(queue: str, peer1: Peer1) -> None:
    peer1.attach_receiver(f"/queues/{queue}", 1)
    peer1.transfer(1, b"x")
    peer1.expect_error(c.End, "amqp:not-allowed", "by which the broker sends")
    peer1.send(c.End())


def test_a_descriptor_that_is_a_long_number(queue: str, peer1: Peer1) -> None:
    # The scanner does not read it by field.
    from harebell.wire.v1.frames import encode_frame

    peer1.attach_sender(f"/queues/{queue}")
    fields = c.Transfer(0, 0, b"t", 0).encoded()[3:]
    descriptor = b"\0\x80" + int(ULong(0x14)).to_bytes(8)
    peer1.send_bytes(encode_frame(descriptor + fields + data_section(b"x")))
    peer1.expect(c.Disposition, first=0, state=ACCEPTED)

"""Links: attach, what is refused, detach."""

from __future__ import annotations

import pytest

from harebell.auth.permissions import Permissions
from harebell.wire.v09.methods import (
    ExchangeDeclare,
    ExchangeDeclareOk,
    ExchangeDelete,
    ExchangeDeleteOk,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)
from harebell.wire.v1 import composites as c
from harebell.wire.v1.values import Described, Symbol, ULong
from tests.conformance.arriving import unique
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1

OUTCOMES = (
    "amqp:accepted:list",
    "amqp:rejected:list",
    "amqp:released:list",
    "amqp:modified:list",
)


def sender(address: object, **fields: object) -> c.Attach:
    """An attach of a link to publish on."""
    given: dict[str, object] = {"target": c.Target(address), "initial_delivery_count": 0}
    return c.Attach(unique("s"), 0, False, source=c.Source(), **(given | fields))  # type: ignore[arg-type]


def receiver(address: object, **fields: object) -> c.Attach:
    """An attach of a link to consume on."""
    given: dict[str, object] = {"source": c.Source(address)}
    return c.Attach(unique("r"), 0, True, target=c.Target(), **(given | fields))  # type: ignore[arg-type]


# --- attach -------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#067", "1.0#069", "1.0#088")
def test_the_attach_of_a_sender_is_answered_with_credit(queue: str, peer1: Peer1) -> None:
    answer = peer1.attach_sender(f"/queues/{queue}", 5, name="mine")
    assert (answer.name, answer.handle, answer.role) == ("mine", 5, True)
    assert answer.target.address == f"/queues/{queue}"
    assert answer.source == c.Source()
    assert (answer.snd_settle_mode, answer.rcv_settle_mode) == (2, 0)
    assert answer.initial_delivery_count is None
    assert answer.max_message_size
    assert peer1.credit.link_credit == 1_024
    assert peer1.credit.delivery_count == 0


@pytest.mark.rule("1.0#087", "1.0#089")
def test_the_attach_of_a_receiver_is_answered_with_its_outcomes(queue: str, peer1: Peer1) -> None:
    answer = peer1.attach_receiver(f"/queues/{queue}", 5, name="mine")
    assert (answer.name, answer.handle, answer.role) == ("mine", 5, False)
    assert answer.initial_delivery_count == 0
    # Mixed is answered by what the broker does.
    assert answer.snd_settle_mode == 0
    source = answer.source
    assert source.address == f"/queues/{queue}"
    assert source.outcomes == OUTCOMES
    assert source.default_outcome == c.Released()
    assert source.distribution_mode == "move"
    assert answer.target == c.Target()


@pytest.mark.rule("1.0#065")
def test_links_in_both_directions_may_have_one_name(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0, name="pair")
    peer1.attach_receiver(f"/queues/{queue}", 1, name="pair")
    peer1.quiet()


@pytest.mark.rule("1.0#064")
def test_a_handle_in_use_ends_the_session(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.send(sender(f"/queues/{queue}"))
    peer1.expect_error(
        c.End, "amqp:session:handle-in-use", "handle 0 is already associated with a link"
    )
    peer1.send(c.End())


@pytest.mark.rule("1.0#060")
def test_a_handle_above_the_limit_closes_the_connection(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 255)
    peer1.send(c.Attach("l", 256, False, target=c.Target("x"), initial_delivery_count=0))
    words = "link handle value (256) exceeds maximum link handle value (255)"
    peer1.expect_error(c.Close, "amqp:connection:framing-error", words)
    peer1.expect_end()


# --- refused ------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#068", "1.0#073")
@pytest.mark.parametrize("make", [sender, receiver])
def test_a_queue_that_is_not_there_is_not_found(peer1: Peer1, make: type[c.Attach]) -> None:
    asked = make("/queues/none")
    peer1.expect_refused(asked, "amqp:not-found", "no queue 'none' in vhost '/'")
    # The handle is free again.
    peer1.expect_refused(make("/queues/none"), "amqp:not-found")


def test_an_exchange_that_is_not_there_is_not_found(peer1: Peer1) -> None:
    asked = sender("/exchanges/none/k")
    peer1.expect_refused(asked, "amqp:not-found", "no exchange 'none' in vhost '/'")


@pytest.mark.parametrize(
    "address",
    [
        "/queues/",
        "/queues/a/b",
        "/queues/%F",
        "/queues/%ff",
        "/exchanges/",
        "/exchanges//k",
        "/exchanges/amq.default",
        "/exchanges/a/b/c",
        "/exchange",
        "/exchange/a/b/c",
        "/nothing/of/it",
        "/",
    ],
)
def test_an_address_that_names_nothing(peer1: Peer1, address: str) -> None:
    words = "Attach refused: {bad_address_string"
    peer1.expect_refused(sender(address), "amqp:invalid-field", words)


def test_a_source_must_be_a_queue(peer1: Peer1) -> None:
    peer1.expect_refused(
        receiver("/exchanges/amq.topic/k"), "amqp:invalid-field", "{bad_address_string"
    )
    peer1.expect_refused(receiver(None), "amqp:invalid-field", "{bad_address,undefined}")
    peer1.expect_refused(receiver(ULong(3)), "amqp:invalid-field", "address must be string")


@pytest.mark.rule("1.0#070")
@pytest.mark.parametrize(
    ("changes", "condition", "text"),
    [
        ({"target": None}, "amqp:invalid-field", "target is missing"),
    ],
)
def test_a_sender_that_asks_for_what_is_not_there(
    peer1: Peer1, changes: dict[str, object], condition: str, text: str
) -> None:
    peer1.expect_refused(sender("x", **changes), condition, text)


@pytest.mark.rule("1.0#155")
def test_outcomes_that_are_not_known(queue: str, peer1: Peer1) -> None:
    source = c.Source(f"/queues/{queue}", outcomes=(Symbol("amqp:lost:list"),))
    asked = receiver("", source=source)
    peer1.expect_refused(asked, "amqp:not-implemented", "Outcomes not supported: amqp:lost:list")


def test_an_internal_exchange_takes_no_messages_of_clients(
    peer: Peer, peer1: Peer1, name: str
) -> None:
    peer.send(ExchangeDeclare(exchange=name, type="direct", internal=True))
    peer.expect(ExchangeDeclareOk)
    words = f"forbidden to publish to internal exchange '{name}'"
    peer1.expect_refused(sender(f"/exchanges/{name}"), "amqp:unauthorized-access", words)


def test_an_exclusive_queue_of_another_connection_is_not_read(
    peer: Peer, peer1: Peer1, name: str
) -> None:
    peer.send(QueueDeclare(queue=name, exclusive=True))
    peer.expect(QueueDeclareOk)
    words = f"cannot obtain exclusive access to locked queue '{name}'"
    peer1.expect_refused(receiver(f"/queues/{name}"), "amqp:resource-locked", words)


def test_others_publish_to_a_dynamic_queue_as_they_answer(connect1: Connect1) -> None:
    asker, answerer = (connect1().open().begin() for _ in range(2))
    asked = asker.attach_receiver(None, 1, credit=1, source=c.Source(dynamic=True))
    assert asked.source is not None
    answerer.attach_sender(asked.source.address, 0)
    answerer.transfer(0, b"answer")
    answerer.expect(c.Disposition, state=c.Accepted())
    assert asker.expect_transfer().payload.endswith(b"answer")


def test_a_missing_permission_ends_the_session(memory: MemorySite, memory1: Connect1) -> None:
    memory.users.add("other", "secret", vhosts=("/",))
    user = memory.users.get("other")
    assert user is not None
    user.permissions["/"] = Permissions("", "", "")
    peer = memory1().open(user="other", password="secret")
    for asked, text in (
        (sender("/queues/q"), "write access to exchange 'amq.default' in vhost '/' refused"),
        (receiver("/queues/q"), "read access to queue 'q' in vhost '/' refused"),
        (sender("/exchanges/amq.topic"), "write access to exchange 'amq.topic'"),
    ):
        peer.begin()
        peer.send(asked)
        peer.expect_error(c.End, "amqp:unauthorized-access", text)
        peer.send(c.End())


# --- detach -------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#072", "1.0#075")
@pytest.mark.parametrize("closed", [True, False])
def test_detach_is_answered_and_the_handle_is_free(queue: str, peer1: Peer1, closed: bool) -> None:
    for _ in range(2):
        peer1.attach_sender(f"/queues/{queue}", 0)
        peer1.attach_receiver(f"/queues/{queue}", 1)
        for handle in (0, 1):
            peer1.send(c.Detach(handle, closed))
            peer1.expect(c.Detach, handle=handle, closed=closed, error=None)


def test_what_is_not_settled_is_requeued_at_detach(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    for body in (b"a", b"b", b"c"):
        peer1.transfer(0, body)
        peer1.expect(c.Disposition)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=3)
    for number in range(3):
        peer1.expect_transfer(delivery_id=number)
    peer1.send(c.Disposition(True, 1, settled=True, state=c.Accepted()), c.Detach(1, True))
    peer1.expect(c.Detach)
    peer1.attach_receiver(f"/queues/{queue}", 2, credit=3)
    assert peer1.expect_transfer(delivery_id=3).payload.endswith(b"\x01a")
    assert peer1.expect_transfer(delivery_id=4).payload.endswith(b"\x01c")


@pytest.mark.rule("1.0#112")
def test_a_deleted_queue_detaches_its_links(peer: Peer, queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0)
    peer1.attach_receiver(f"/queues/{queue}", 1, credit=3)
    peer1.transfer(0, b"a")
    found = [peer1.next().value for _ in range(2)]
    assert {type(each) for each in found} == {c.Disposition, c.Transfer}
    peer.send(QueueDelete(queue=queue))
    peer.expect(QueueDeleteOk)
    error = peer1.expect_error(c.Detach, "amqp:resource-deleted", f"queue '{queue}'")
    assert error.info is None
    # The peer has not seen it yet.
    peer1.send(c.Disposition(True, 0, settled=True, state=c.Accepted()))
    peer1.give(1, 10)
    peer1.send(c.Detach(1, True))
    number = peer1.transfer(0, b"b")
    peer1.expect(c.Disposition, first=number, state=c.Released())
    peer1.expect_error(c.Detach, "amqp:resource-deleted", f"queue '{queue}'")
    peer1.send(c.Detach(0, True))
    peer1.quiet()


def test_a_deleted_exchange_detaches_the_link(peer: Peer, peer1: Peer1, name: str) -> None:
    peer.send(ExchangeDeclare(exchange=name, type="fanout"))
    peer.expect(ExchangeDeclareOk)
    peer.send(QueueDeclare(queue=name), QueueBind(queue=name, exchange=name))
    peer.expect(QueueDeclareOk)
    peer.expect(QueueBindOk)
    peer1.attach_sender(f"/exchanges/{name}", 0)
    peer1.transfer(0, b"a")
    peer1.expect(c.Disposition, state=c.Accepted())
    peer.send(ExchangeDelete(exchange=name))
    peer.expect(ExchangeDeleteOk)
    number = peer1.transfer(0, b"b")
    peer1.expect(c.Disposition, first=number, state=c.Released())
    peer1.expect_error(c.Detach, "amqp:not-found", f"no exchange '{name}' in vhost '/'")
    peer1.send(c.Detach(0, True))


# --- dynamic nodes ------------------------------------------------------------------------------


@pytest.mark.parametrize("capabilities", [(Symbol("temporary-queue"),), ()])
def test_a_dynamic_source_is_a_queue_as_long_as_its_link(
    connect1: Connect1, capabilities: tuple[Symbol, ...]
) -> None:
    peer = connect1().open().begin()
    source = c.Source(dynamic=True, capabilities=capabilities)
    answer = peer.attach_receiver(None, 1, source=source, credit=1)
    address = answer.source.address
    assert address.startswith("/queues/amq.dyn-")
    assert answer.source.dynamic
    assert answer.source.expiry_policy == "link-detach"
    properties = answer.source.dynamic_node_properties or {}
    assert properties["lifetime-policy"] == c.DeleteOnClose()
    peer.attach_sender(address, 0)
    peer.transfer(0, b"a")
    assert {type(peer.next().value) for _ in range(2)} == {c.Disposition, c.Transfer}
    peer.send(c.Detach(1, True))
    peer.expect(c.Detach)
    peer.expect_refused(c.Attach("again", 2, True, source=c.Source(address)), "amqp:not-found")


def test_a_dynamic_target_is_a_queue_as_long_as_its_session(connect1: Connect1) -> None:
    peer = connect1().open().begin()
    target = c.Target(dynamic=True, capabilities=(Symbol("temporary-queue"),))
    address = peer.attach_sender(None, 0, target=target).target.address
    peer.transfer(0, b"a")
    peer.expect(c.Disposition, state=c.Accepted())
    peer.attach_receiver(address, 1, credit=1)
    peer.expect_transfer()
    peer.send(c.End())
    peer.expect(c.End)
    peer.begin()
    peer.expect_refused(receiver(address), "amqp:not-found")


def test_a_dynamic_target_is_a_queue_as_long_as_its_link(connect1: Connect1) -> None:
    peer = connect1().open().begin()
    target = c.Target(dynamic=True, capabilities=(Symbol("temporary-queue"),))
    address = peer.attach_sender(None, 0, target=target).target.address
    peer.send(c.Detach(0, True))
    peer.expect(c.Detach)
    peer.expect_refused(receiver(address), "amqp:not-found")


@pytest.mark.parametrize(
    ("address", "fields", "words"),
    [
        ("/topic/a", {"properties": {Symbol("rabbitmq:priority"): "x"}}, "rabbitmq:priority"),
        ("/topic/" + "a" * 256, {}, "the binding key has 256 bytes"),
    ],
)
def test_a_refused_source_of_an_exchange_leaves_no_queue(
    memory: MemorySite, memory1: Connect1, address: str, fields: dict[str, object], words: str
) -> None:
    peer = memory1().open().begin()
    before = set(memory.broker.vhosts["/"].queues)
    asked = receiver(address, **fields)
    peer.send(asked)
    peer.expect(c.Attach, source=None)
    assert words in (peer.expect(c.Detach).error.description or "")
    assert set(memory.broker.vhosts["/"].queues) == before


def test_another_kind_of_dynamic_node_is_refused(peer1: Peer1) -> None:
    target = c.Target(dynamic=True, capabilities=(Symbol("temporary-set"),))
    peer1.expect_refused(sender("", target=target), "amqp:not-implemented", "temporary-set")
    target = c.Target("a", dynamic=True)
    peer1.expect_refused(sender("", target=target), "amqp:invalid-field", "has no address")


def test_a_reply_to_direct_reply_to_needs_no_queue(connect1: Connect1) -> None:
    peer, server = connect1().open().begin(), connect1().open().begin()
    source = c.Source(
        dynamic=True,
        expiry_policy=Symbol("link-detach"),
        capabilities=(Symbol("rabbitmq:volatile-queue"),),
    )
    answer = peer.attach_receiver(None, 1, source=source, credit=1, snd_settle_mode=1)
    address = answer.source.address
    assert address.startswith("/queues/amq.rabbitmq.reply-to.")
    server.attach_sender(None, 0)
    reply = c.Properties(to=address)
    # The second one has no credit, and is dropped.
    for _ in range(2):
        server.transfer(0, b"pong", sections=reply.encoded())
        server.expect(c.Disposition, state=c.Accepted())
    assert peer.expect_transfer(settled=True).payload.endswith(b"pong")
    peer.give(1, 10, delivery_count=1)
    server.attach_sender(address, 1)
    server.transfer(1, b"again")
    server.expect(c.Disposition, state=c.Accepted())
    assert peer.expect_transfer(settled=True).payload.endswith(b"again")
    peer.send(c.Detach(1, True))
    peer.expect(c.Detach)
    # The requester is gone: its replies are dropped.
    server.transfer(0, b"late", sections=reply.encoded())
    server.expect(c.Disposition, state=c.Accepted())
    assert peer.maybe() is None


def test_replies_of_others_cannot_be_read_even_if_their_address_is_known(
    connect1: Connect1,
) -> None:
    peer, other = connect1().open().begin(), connect1().open().begin()
    source = c.Source(dynamic=True, capabilities=(Symbol("rabbitmq:volatile-queue"),))
    answer = peer.attach_receiver(None, 1, source=source, credit=9, snd_settle_mode=1)
    address = answer.source.address
    for mode in (None, "copy"):
        asked = receiver(address, source=c.Source(address, distribution_mode=mode))
        other.expect_refused(asked, "amqp:not-found", "no queue 'amq.rabbitmq.reply-to.")
    # Asked for by its name it is not taken over either: it is a link of another container.
    answer = other.attach_receiver(None, 1, source=source, credit=9, snd_settle_mode=1)
    assert answer.source.address != address
    other.attach_sender(address, 0)
    other.transfer(0, b"pong")
    other.expect(c.Disposition, state=c.Accepted())
    assert peer.expect_transfer(settled=True).payload.endswith(b"pong")
    other.quiet()


def test_direct_reply_to_keeps_nothing(peer1: Peer1) -> None:
    source = c.Source(dynamic=True, capabilities=(Symbol("rabbitmq:volatile-queue"),))
    asked = receiver(None, source=source)
    peer1.expect_refused(asked, "amqp:not-implemented", "snd-settle-mode")


# --- bare names ---------------------------------------------------------------------------------


def test_bare_addresses_name_what_is_there(name: str) -> None:
    site = MemorySite(addresses="bare")
    other = Peer(site, site.connect()).open()
    other.send(QueueDeclare(queue=name))
    other.expect(QueueDeclareOk)
    peer = Peer1(site, site.connect()).open().begin()
    peer.expect_refused(sender("none"), "amqp:not-found", "no queue 'none' in vhost '/'")
    peer.expect_refused(receiver("none"), "amqp:not-found", "no queue 'none' in vhost '/'")
    peer.attach_sender(name, 0)
    peer.attach_receiver(name, 1, credit=9)
    peer.attach_receiver("amq.topic/a.*", 2, credit=9)
    peer.transfer(0, b"to the queue", settled=True)
    assert peer.expect_transfer(handle=1).payload.endswith(b"to the queue")
    # An exchange: the key is in the address, or the subject of each message.
    peer.attach_sender("amq.topic/a.b", 3)
    peer.transfer(3, b"by key", settled=True)
    assert peer.expect_transfer(handle=2).payload.endswith(b"by key")
    peer.attach_sender("amq.topic", 4)
    peer.transfer(4, b"by subject", sections=c.Properties(subject="a.c").encoded(), settled=True)
    assert peer.expect_transfer(handle=2).payload.endswith(b"by subject")
    peer.attach_sender(None, 5)
    for to, handle in ((name, 1), ("amq.topic/a.d", 2)):
        peer.transfer(5, b"by to", sections=c.Properties(to=to).encoded(), settled=True)
        assert peer.expect_transfer(handle=handle).payload.endswith(b"by to")
    other.done()
    peer.done()


TOPIC_BINDING = Symbol("apache.org:legacy-amqp-topic-binding:string")


@pytest.mark.parametrize("descriptor", [TOPIC_BINDING, ULong(0x468C_0000_0001)], ids=str)
def test_a_bare_topic_is_read_whole_or_by_the_binding_key_of_a_filter(descriptor: object) -> None:
    site = MemorySite(addresses="bare")
    peer = Peer1(site, site.connect()).open().begin()
    given = {Symbol("topic"): Described(descriptor, "news.#")}
    peer.attach_receiver("amq.topic", 1, credit=9)
    source = c.Source("amq.topic", filter=given)
    answer = peer.attach_receiver(None, 2, source=source, credit=9)
    assert answer.source.filter == given
    peer.attach_sender("amq.topic", 3)
    for subject, handles in (("other", (1,)), (None, (1,)), ("news.today", (1, 2))):
        sections = c.Properties(subject=subject).encoded()
        peer.transfer(3, b"text", sections=sections, settled=True)
        assert {peer.expect_transfer().value.handle for _ in handles} == set(handles)
    peer.done()


def test_version_1_can_be_switched_off() -> None:
    site = MemorySite(addresses="v2")
    peer = Peer1(site, site.connect()).open().begin()
    words = "Attach refused: {amqp_address_v1_not_permitted"
    for address in ("q", "/queue/q", "/exchange/amq.topic/k"):
        peer.expect_refused(sender(address), "amqp:invalid-field", words)
        peer.expect_refused(receiver(address), "amqp:invalid-field", words)
    peer.done()

"""Subscriptions and temporary topics, as JMS clients use them."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.auth.permissions import Permissions
from harebell.auth.users import User
from harebell.model.vhost import VHost
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import encode_sections
from harebell.wire.v1.values import Described, Symbol
from tests.conformance.arriving import unique
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1
from tests.conformance.v1.test_consuming import body_of

TOPIC, SHARED, GLOBAL = Symbol("topic"), Symbol("shared"), Symbol("global")


@pytest.fixture
def vhost(memory: MemorySite) -> VHost:
    """What the broker has."""
    return memory.broker.vhosts["/"]


def topic(address: str, *more: Symbol, durable: bool = False) -> c.Source:
    """A source as JMS clients ask for it."""
    return c.Source(
        address,
        durable=2 if durable else 0,
        expiry_policy=Symbol("never" if durable else "link-detach"),
        capabilities=(TOPIC, *more),
    )


def publish(connect: Connect1, address: str, *bodies: bytes) -> None:
    """Publish on a topic, from a connection of its own."""
    peer = connect().open().begin()
    peer.attach_sender(None, target=c.Target(address, capabilities=(TOPIC,)))
    for body in bodies:
        peer.transfer(0, body, settled=True)
    peer.close()


def detach(peer: Peer1, handle: int = 1, *, closed: bool = False) -> None:
    """Detach a link."""
    peer.send(c.Detach(handle, closed))
    peer.expect(c.Detach, handle=handle, closed=closed, error=None)


def bodies_of(peer: Peer1, count: int) -> list[bytes]:
    """The bodies of the next deliveries."""
    return [body_of(peer.expect_transfer()) for _ in range(count)]


def test_the_broker_offers_shared_subscriptions(peer1: Peer1) -> None:
    assert "SHARED-SUBS" in peer1.answer.offered_capabilities


@pytest.mark.parametrize(
    "address", ["news", "/topic/news", "amq.topic/news", "/exchanges/amq.topic/news"]
)
def test_each_subscriber_of_a_topic_gets_each_message(
    memory1: Connect1, vhost: VHost, address: str
) -> None:
    peer1 = memory1().open().begin()
    before = set(vhost.queues)
    for handle in (1, 2):
        answer = peer1.attach_receiver(None, handle, source=topic(address), credit=5)
        assert answer.source.capabilities == (TOPIC,)
        assert answer.source.expiry_policy == "link-detach"
    publish(memory1, address, b"m")
    assert bodies_of(peer1, 2) == [b"m", b"m"]
    for handle in (1, 2):
        detach(peer1, handle)
    assert set(vhost.queues) == before


def test_a_topic_that_is_an_exchange_gives_all_of_it(memory1: Connect1) -> None:
    peer1 = memory1().open().begin()
    peer1.attach_receiver(None, source=topic("amq.topic"), credit=5)
    publish(memory1, "amq.topic/a.b", b"m")
    assert bodies_of(peer1, 1) == [b"m"]


@pytest.mark.rule("1.0#156", "1.0#157")
def test_a_durable_subscription_outlives_its_connection(memory1: Connect1, vhost: VHost) -> None:
    container = unique("client_id")
    for each in range(2):
        peer1 = memory1().open(container=container).begin()
        answer = peer1.attach_receiver(None, name="sub", source=topic("news", durable=True))
        assert (answer.source.expiry_policy, answer.source.timeout) == ("never", 0)
        if each:
            peer1.give(1, 5)
            assert bodies_of(peer1, 1) == [b"m"]
            peer1.send(c.Disposition(True, 0, 0, True, c.Accepted()))
        detach(peer1)
        if not each:
            publish(memory1, "news", b"m")
        peer1.close()
    name = f"qpidsub_/{container.replace('_', '__')}_/sub_/durable"
    queue = vhost.queues[name]
    assert (queue.durable, queue.auto_delete, queue.ready_count()) == (True, False, 0)
    vhost.delete_queue(name)


def test_a_closed_detach_ends_a_durable_subscription(memory1: Connect1, vhost: VHost) -> None:
    peer1 = memory1().open(container="c1").begin()
    peer1.attach_receiver(None, name="sub", source=topic("news", durable=True))
    assert "qpidsub_/c1_/sub_/durable" in vhost.queues
    detach(peer1, closed=True)
    assert "qpidsub_/c1_/sub_/durable" not in vhost.queues


def look_up(peer: Peer1, name: str, *wished: Symbol) -> Any:
    """Attach a link without a source."""
    peer.send(c.Attach(name, 3, True, target=c.Target(), desired_capabilities=wished))
    return peer.expect(c.Attach, name=name, handle=3)


def test_a_subscription_is_ended_by_a_link_without_a_source(
    memory1: Connect1, vhost: VHost
) -> None:
    peer1 = memory1().open(container="c2").begin()
    peer1.attach_receiver(None, name="sub", source=topic("news", durable=True))
    detach(peer1)
    source = look_up(peer1, "sub").source
    assert (source.address, source.expiry_policy) == ("/exchanges/amq.topic/news", "never")
    peer1.give(3, 5, drain=True)
    peer1.expect(c.Flow, handle=3, drain=True, link_credit=0)
    detach(peer1, 3)
    assert "qpidsub_/c2_/sub_/durable" in vhost.queues
    look_up(peer1, "sub")
    detach(peer1, 3, closed=True)
    assert "qpidsub_/c2_/sub_/durable" not in vhost.queues
    asked = c.Attach("sub", 3, True, target=c.Target())
    peer1.expect_refused(asked, "amqp:not-found", "no subscription 'sub'")


def test_a_subscription_that_is_in_use_does_not_end(memory1: Connect1, vhost: VHost) -> None:
    peer1 = memory1().open(container="c3").begin()
    source = topic("news", SHARED, durable=True)
    peer1.attach_receiver(None, name="sub|1", source=source)
    look_up(peer1, "sub")
    detach(peer1, 3, closed=True)
    assert "qpidsub_/c3_/sub_/durable" in vhost.queues
    detach(peer1, closed=True)
    assert "qpidsub_/c3_/sub_/durable" not in vhost.queues


@pytest.mark.parametrize("durable", [False, True])
def test_a_shared_subscription_is_one_queue(
    memory1: Connect1, vhost: VHost, *, durable: bool
) -> None:
    peer1 = memory1().open(container="c4").begin()
    source = topic("news", SHARED, durable=durable)
    for handle, name in ((1, "sub"), (2, "sub|2")):
        answer = peer1.attach_receiver(None, handle, name=name, source=source)
        assert answer.source.capabilities == (TOPIC, SHARED)
        peer1.give(handle, 5)
    publish(memory1, "news", b"0", b"1")
    assert sorted(bodies_of(peer1, 2)) == [b"0", b"1"]
    queue = vhost.queues[f"qpidsub_/c4_/sub_/{'durable' if durable else 'nondurable'}"]
    assert len(queue.consumers) == 2
    # What one has not settled is the other's, and is not kept for it.
    peer1.send(c.Detach(1))
    peer1.expect_transfer(handle=2)
    peer1.expect(c.Detach, handle=1)
    detach(peer1, 2)
    assert (queue.name in vhost.queues) is durable
    if durable:
        vhost.delete_queue(queue.name)


def test_a_global_subscription_is_shared_by_containers(memory1: Connect1, vhost: VHost) -> None:
    source = topic("news", SHARED, GLOBAL, durable=True)
    peers = [memory1().open().begin() for _ in range(2)]
    for each in peers:
        each.attach_receiver(None, name="sub|global", source=source)
    queue = vhost.queues["qpidsub_/_global__/sub_/durable"]
    assert len(queue.consumers) == 2
    for each in peers:
        detach(each)
    look_up(peers[0], "sub|global", SHARED, GLOBAL)
    detach(peers[0], 3, closed=True)
    assert queue.name not in vhost.queues


def test_a_durable_subscription_to_another_topic_begins_again(
    memory1: Connect1, vhost: VHost
) -> None:
    peer1 = memory1().open(container="c5").begin()
    peer1.attach_receiver(None, name="sub", source=topic("old", SHARED, durable=True))
    asked = c.Attach("sub|2", 2, True, source=topic("new", SHARED, durable=True), target=c.Target())
    peer1.expect_refused(asked, "amqp:illegal-state", "in use for another topic")
    detach(peer1)
    publish(memory1, "old", b"old")
    peer1.attach_receiver(None, name="sub", source=topic("new", SHARED, durable=True), credit=5)
    publish(memory1, "old", b"old")
    publish(memory1, "new", b"new")
    assert bodies_of(peer1, 1) == [b"new"]
    detach(peer1, closed=True)
    assert "qpidsub_/c5_/sub_/durable" not in vhost.queues


TARGETS = [
    c.Target("news", capabilities=(TOPIC,)),
    c.Target("/exchanges/amq.topic/news", capabilities=(TOPIC,)),
    c.Target("/exchanges/amq.direct/news", capabilities=(Symbol("DISCARD_UNROUTABLE"),)),
    c.Target(dynamic=True, capabilities=(Symbol("temporary-topic"),)),
]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_topic_accepts_what_nobody_listens_to(memory1: Connect1, target: c.Target) -> None:
    peer1 = memory1().open().begin()
    answer = peer1.attach_sender(None, target=target)
    assert answer.target.capabilities == target.capabilities
    number = peer1.transfer(0, b"m")
    peer1.expect(c.Disposition, first=number, settled=True, state=c.Accepted())
    peer1.transfer(0, b"m", settled=True)
    peer1.quiet()


def test_a_queue_that_is_gone_is_no_topic(memory1: Connect1, vhost: VHost) -> None:
    peer1 = memory1().open().begin()
    queue = vhost.declare_queue(unique("gone"))
    target = c.Target(f"/queues/{queue.name}", capabilities=(Symbol("DISCARD_UNROUTABLE"),))
    peer1.attach_sender(None, target=target)
    vhost.delete_queue(queue.name)
    peer1.transfer(0, b"m")
    peer1.expect(c.Disposition, settled=True, state=c.Released())
    peer1.expect_error(c.Detach, "amqp:resource-deleted")


def selecting(text: str, address: str = "news", *more: Symbol, durable: bool = True) -> c.Source:
    """A source with a selector, as JMS clients ask for it."""
    source = topic(address, *more, durable=durable)
    name = Symbol("apache.org:selector-filter:string")
    source.filter = {Symbol("jms-selector"): Described(name, text)}
    return source


def publish_priorities(connect: Connect1, *priorities: int) -> None:
    """Publish a message of each of these priorities, which is its body, on a topic."""
    peer = connect().open().begin()
    peer.attach_sender(None, target=c.Target("news", capabilities=(TOPIC,)))
    for each in priorities:
        sections = encode_sections(header=c.Header(priority=each))
        peer.transfer(0, b"%d" % each, sections=sections, settled=True)
    peer.close()


@pytest.mark.parametrize(
    ("more", "durable"), [((), True), ((SHARED,), True), ((SHARED,), False), ((), False)]
)
def test_what_no_selector_of_a_subscription_selects_does_not_come_into_its_queue(
    memory1: Connect1, vhost: VHost, more: tuple[Symbol, ...], *, durable: bool
) -> None:
    before = set(vhost.queues)
    peer1 = memory1().open(container=unique("selecting")).begin()
    source = selecting("JMSPriority > 5", "news", *more, durable=durable)
    answer = peer1.attach_receiver(None, name="sub", source=source)
    assert answer.source.filter == source.filter
    (name,) = set(vhost.queues) - before
    publish_priorities(memory1, 1, 9, 3, 7)
    assert vhost.queues[name].ready_count() == 2
    peer1.give(1, 5)
    assert bodies_of(peer1, 2) == [b"9", b"7"]
    detach(peer1, closed=True)
    assert name not in vhost.queues


def test_a_durable_subscription_with_its_selector_is_attached_again_with_its_messages(
    memory1: Connect1, vhost: VHost
) -> None:
    peer1 = memory1().open(container="c8").begin()
    peer1.attach_receiver(None, name="sub", source=selecting("JMSPriority > 5"))
    detach(peer1)
    publish_priorities(memory1, 9, 1)
    peer1.attach_receiver(None, name="sub", source=selecting("JMSPriority > 5"), credit=5)
    assert bodies_of(peer1, 1) == [b"9"]
    detach(peer1, closed=True)
    assert "qpidsub_/c8_/sub_/durable" not in vhost.queues


def test_a_durable_subscription_with_another_selector_begins_again(
    memory1: Connect1, vhost: VHost
) -> None:
    peer1 = memory1().open(container="c9").begin()
    peer1.attach_receiver(None, name="sub", source=selecting("JMSPriority > 5", "news", SHARED))
    asked = c.Attach("sub|2", 2, True, source=topic("news", SHARED, durable=True))
    asked.target = c.Target()
    peer1.expect_refused(asked, "amqp:illegal-state", "with another selector")
    detach(peer1)
    publish_priorities(memory1, 9)
    source = selecting("JMSPriority < 5", "news", SHARED)
    peer1.attach_receiver(None, name="sub", source=source, credit=5)
    publish_priorities(memory1, 9, 2)
    assert bodies_of(peer1, 1) == [b"2"]
    (binding,) = vhost.queues["qpidsub_/c9_/sub_/durable"].bound or {}
    assert binding.arguments == {"x-filter-jms-selector": "JMSPriority < 5"}
    detach(peer1, closed=True)


def test_a_selector_on_what_only_a_queue_knows_is_that_of_the_consumer_alone(
    memory1: Connect1, vhost: VHost
) -> None:
    peer1 = memory1().open(container="c10").begin()
    source = selecting("NOT JMSRedelivered")
    peer1.attach_receiver(None, name="sub", source=source, credit=5)
    (binding,) = vhost.queues["qpidsub_/c10_/sub_/durable"].bound or {}
    assert binding.arguments == {}
    publish_priorities(memory1, 9)
    assert bodies_of(peer1, 1) == [b"9"]
    detach(peer1, closed=True)


def test_a_wrong_selector_of_a_subscription_leaves_no_queue(
    memory1: Connect1, vhost: VHost
) -> None:
    peer1 = memory1().open(container="c11").begin()
    before = set(vhost.queues)
    asked = c.Attach("sub", 1, True, source=selecting("color = "), target=c.Target())
    peer1.expect_refused(asked, "amqp:invalid-field", "character 9")
    assert set(vhost.queues) == before


def test_names_of_containers_and_links_do_not_mix(memory1: Connect1, vhost: VHost) -> None:
    for container, name in (("a_/b", "c"), ("a", "b_/c")):
        peer1 = memory1().open(container=container).begin()
        peer1.attach_receiver(None, name=name, source=topic("news", durable=True))
    found = {name for name in vhost.queues if name.startswith("qpidsub_/a")}
    assert found == {"qpidsub_/a__/b_/c_/durable", "qpidsub_/a_/b__/c_/durable"}


def test_a_name_that_is_too_long_is_refused(peer1: Peer1) -> None:
    source = topic("news", durable=True)
    asked = c.Attach("n" * 250, 1, True, source=source, target=c.Target())
    peer1.expect_refused(asked, "amqp:invalid-field", "too long")


def test_the_address_of_a_queue_is_no_topic(queue: str, peer1: Peer1) -> None:
    asked = c.Attach("l", 1, True, source=topic(f"/queues/{queue}"), target=c.Target())
    peer1.expect_refused(asked, "amqp:illegal-state", "no topic")


@pytest.fixture
def other(memory: MemorySite) -> User:
    """A user "other" with the password "secret"."""
    memory.users.add("other", "secret", vhosts=("/",))
    user = memory.users.get("other")
    assert user is not None
    return user


@pytest.mark.parametrize(
    ("configure", "write", "read"),
    [("", ".*", ".*"), (".*", "", ".*"), (".*", ".*", "amq.*"), (".*", ".*", "qpidsub.*")],
)
def test_a_subscription_needs_rights_to_its_queue_and_its_exchange(
    memory1: Connect1, other: User, vhost: VHost, configure: str, write: str, read: str
) -> None:
    other.permissions["/"] = Permissions(configure, write, read)
    peer1 = memory1().open(user="other", password="secret").begin()
    before = set(vhost.queues)
    source = topic("news", durable=True)
    peer1.send(c.Attach("sub", 1, True, source=source, target=c.Target()))
    peer1.expect_error(c.End, "amqp:unauthorized-access")
    peer1.send(c.End())
    assert set(vhost.queues) == before


@pytest.mark.parametrize("durable", [True, False])
def test_the_audit_trail_has_a_durable_subscription_whose_exchange_may_not_be_read(
    memory: MemorySite, memory1: Connect1, other: User, durable: bool
) -> None:
    other.permissions["/"] = Permissions(".*", ".*", "^qpidsub")
    lines: list[tuple[Any, ...]] = []
    memory.broker.events.audit = lambda *line: lines.append(line)
    peer1 = memory1().open(user="other", password="secret", container="c7").begin()
    for address in ("/exchanges/amq.topic/news", "/exchanges/hidden/news"):
        source = topic(address, durable=durable)
        peer1.send(c.Attach("sub", 1, True, source=source, target=c.Target()))
        peer1.expect_error(c.End, "amqp:unauthorized-access", "read access to exchange")
        peer1.send(c.End())
        peer1.begin()
    # As in the other versions: a queue of a consumer alone, and its binding, have no lines.
    assert [(line[0], line[1]["source_name"]) for line in lines] == [
        ("binding.created", "amq.topic"),
        ("binding.created", "hidden"),
    ] * durable
    assert all(line[1]["destination_name"] == "qpidsub_/c7_/sub_/durable" for line in lines)
    assert all("read access to exchange" in line[2] for line in lines)


def test_the_end_of_a_subscription_needs_configure(
    memory1: Connect1, other: User, vhost: VHost
) -> None:
    other.permissions["/"] = Permissions(".*", ".*", ".*")
    peer1 = memory1().open(user="other", password="secret", container="c6").begin()
    peer1.attach_receiver(None, name="sub", source=topic("news", durable=True))
    other.permissions["/"] = Permissions("", ".*", ".*")
    for _ in range(2):
        peer1.send(c.Detach(1, True))
        peer1.expect_error(c.End, "amqp:unauthorized-access", "configure access to queue")
        peer1.send(c.End())
        assert "qpidsub_/c6_/sub_/durable" in vhost.queues
        peer1.begin()
        # The same by a link without a source.
        peer1.send(c.Attach("sub", 1, True, target=c.Target()))
        peer1.expect(c.Attach)
    vhost.delete_queue("qpidsub_/c6_/sub_/durable")


# --- temporary topics ---------------------------------------------------------------------------


@pytest.mark.rule("1.0#153", "1.0#158")
def test_a_temporary_topic_is_an_exchange_that_ends_with_its_link(
    memory1: Connect1, vhost: VHost
) -> None:
    peer1 = memory1().open().begin()
    target = c.Target(dynamic=True, capabilities=(Symbol("temporary-topic"),))
    answer = peer1.attach_sender(None, target=target).target
    assert answer.address.startswith("/exchanges/TempTopic-")
    assert answer.dynamic_node_properties["lifetime-policy"] == c.DeleteOnClose()
    name = answer.address.removeprefix("/exchanges/")
    assert vhost.exchanges[name].KIND == "fanout"
    source = c.Source(answer.address, capabilities=(Symbol("temporary-topic"),))
    for handle in (1, 2):
        peer1.attach_receiver(None, handle, source=source, credit=5)
    peer1.transfer(0, b"m", settled=True)
    assert bodies_of(peer1, 2) == [b"m", b"m"]
    detach(peer1, 0, closed=True)
    assert name not in vhost.exchanges


@pytest.mark.rule("1.0#158")
def test_a_temporary_topic_ends_with_its_connection(memory1: Connect1, vhost: VHost) -> None:
    peer1 = memory1().open().begin()
    target = c.Target(dynamic=True, capabilities=(Symbol("temporary-topic"),))
    name = peer1.attach_sender(None, target=target).target.address.removeprefix("/exchanges/")
    peer1.drop()
    assert name not in vhost.exchanges

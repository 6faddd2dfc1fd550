"""Publishes that pass to a consumer without becoming objects do what each does by itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
from msgspec.structs import replace

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import Properties
from harebell.front.operations.publishing_channel import RoutedPassage
from harebell.kernels.output import OutputPassage
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish

SIZES = [0, 1, 99, 100, 101, 3, 0, 131_064, 7, 5000, 131_065, 2] + [20] * 30
MIXED = [
    *[BasicProperties(message_id=str(number), headers={"n": number}) for number in range(9)],
    BasicProperties(delivery_mode=2, priority=3),
    BasicProperties(expiration="100000"),
    BasicProperties(headers={"CC": ["other"], "BCC": ["q"]}),
]
Setting = Callable[[World, OctetPeer, OctetPeer], None]


def plain(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    taker.send(m.BasicConsume(queue="q", consumer_tag="c", no_ack=True))


def confirming(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    plain(world, sender, taker)
    sender.ask(m.ConfirmSelect())


def acknowledging(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    taker.send(m.BasicConsume(queue="q", consumer_tag="c"))


def without_consumer(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    pass


def two_consumers(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    plain(world, sender, taker)
    taker.send(m.BasicConsume(queue="q", consumer_tag="d", no_ack=True))


def in_transaction(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    plain(world, sender, taker)
    sender.ask(m.TxSelect())


def traced(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    plain(world, sender, taker)
    vhost = world.broker.vhosts["/"]
    vhost.take_metadata(replace(vhost.metadata, tracing=True))


def declared(**arguments: Any) -> Setting:
    def setting(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
        sender.ask(m.QueueDelete(queue="q"))
        names = {name.replace("_", "-"): value for name, value in arguments.items()}
        sender.ask(m.QueueDeclare(queue="q", arguments=names))
        plain(world, sender, taker)

    return setting


def refusing(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    sender.ask(m.QueueDelete(queue="q"))
    limit = {"x-max-length": 3, "x-overflow": "reject-publish"}
    sender.ask(m.QueueDeclare(queue="q", arguments=limit))
    sender.ask(m.ConfirmSelect())


def keyed(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    sender.ask(m.QueueDelete(queue="q"))
    sender.ask(m.QueueDeclare(queue="q", arguments={"x-group-key": "k"}))
    acknowledging(world, sender, taker)


def selecting(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    chosen = {"x-filter-jms-selector": "n = 1"}
    taker.send(m.BasicConsume(queue="q", consumer_tag="c", no_ack=True, arguments=chosen))


def no_local(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    plain(world, sender, taker)
    sender.send(m.BasicConsume(queue="q", consumer_tag="own", no_ack=True, no_local=True))
    sender.frames()


def fanned_out(world: World, sender: OctetPeer, taker: OctetPeer) -> None:
    plain(world, sender, taker)
    sender.ask(m.QueueDeclare(queue="other"))
    sender.ask(m.QueueBind(queue="other", exchange="amq.direct", routing_key="q"))


SETTINGS: dict[str, Setting] = {
    "plain": plain,
    "confirming": confirming,
    "acknowledging": acknowledging,
    "without a consumer": without_consumer,
    "two consumers": two_consumers,
    "in a transaction": in_transaction,
    "traced": traced,
    "single active consumer": declared(x_single_active_consumer=True),
    "with a limit": declared(x_max_length=1),
    "refusing": refusing,
    "deduplicating": declared(x_message_deduplication=True),
    "with ordering keys": keyed,
    "with last values": declared(x_last_value_key="k"),
    "selecting": selecting,
    "with an expiration": declared(x_message_ttl=5),
    "no-local": no_local,
    "fanned out": fanned_out,
}
AT_ONCE = {"plain", "confirming"}
"""Where messages get into the output of the consumer without becoming objects."""
SEEN = {"in a transaction", "traced", "no-local"}
"""Where something has to see each publish."""


def told(peer: OctetPeer) -> list[tuple[int, int, bytes]]:
    """What a peer got, without positive confirms, which may be told together."""
    return [each for each in peer.frames() if each[2][:4] != b"\x00\x3c\x00\x50" or each[0] != 1]


def play(
    setting: Setting,
    exchange: str,
    together: bool,
    lists: list[BasicProperties],
    mandatory: bool,
) -> tuple[Any, ...]:
    """What consumer, publisher and counters show after publishes, given together or one by one."""
    world = World(message_max=131_065)
    sender, taker = world.peer(), world.peer()
    sender.ask(m.QueueDeclare(queue="q"))
    setting(world, sender, taker)
    sender.ask(m.QueueBind(queue="q", exchange="amq.direct", routing_key="q"))
    taker.frames()
    pieces = [
        publish(b"b" * size, exchange=exchange, mandatory=mandatory, properties=properties)
        for size, properties in zip(SIZES, cycle(lists))
    ]
    for data in [b"".join(pieces)] if together else pieces:
        sender.give(data)
    vhost = world.broker.vhosts["/"]
    channel = sender.connection.channels[1]
    queue, source = vhost.queues["q"], vhost.exchanges[exchange]
    arrivals = sender.connection.arrivals
    confirmed = channel.confirms.sent if channel.confirms is not None else None
    return (
        [told(taker), told(sender), confirmed],
        [channel.counters.values(), channel.at_exchange.values(), queue.counters.values()],
        taker.connection.channels[1].counters.values(),
        [(one.tag, one.details.values()) for one in queue.consumers],
        (source.published, source.routed, queue.ready_count(), queue.arrivals()),
        (arrivals.sizes().counts, arrivals.routed, arrivals.wanting_confirm, arrivals.byte_count),
    )


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("exchange", ["", "amq.direct"])
def test_publishes_that_come_together_do_what_they_do_one_by_one(name: str, exchange: str) -> None:
    for mandatory in (False, True):
        for lists in ([BasicProperties()], [BasicProperties(delivery_mode=2)], MIXED):
            together = play(SETTINGS[name], exchange, True, lists, mandatory=mandatory)
            assert together == play(SETTINGS[name], exchange, False, lists, mandatory=mandatory)


@pytest.mark.parametrize("name", SETTINGS)
def test_messages_pass_only_where_nothing_has_to_see_each(name: str) -> None:
    world = World()
    sender, taker = world.peer(), world.peer()
    sender.ask(m.QueueDeclare(queue="q"))
    SETTINGS[name](world, sender, taker)
    sender.ask(m.QueueBind(queue="q", exchange="amq.direct", routing_key="q"))
    sender.give(publish(b"first", exchange="amq.direct"))
    channel = sender.connection.channels[1]
    found = channel.passage(0, "amq.direct", "q")
    kind = OutputPassage if name in AT_ONCE else type(None) if name in SEEN else RoutedPassage
    assert isinstance(found, kind)
    assert channel.passage(0, "amq.fanout", "q") is None


def test_a_consumer_whose_output_is_full_leaves_the_rest_in_the_queue() -> None:
    world = World()
    sender, taker = world.peer(), world.peer()
    sender.ask(m.QueueDeclare(queue="q"))
    plain(world, sender, taker)
    taker.frames()
    bodies = [b"%4d" % number + b"b" * 20_000 for number in range(400)]
    sender.give(b"".join(publish(body) for body in bodies))
    queue = world.broker.vhosts["/"].queues["q"]
    waiting = queue.ready_count()
    assert 0 < waiting < len(bodies)
    got = taker.bodies()
    assert len(got) == len(bodies) - waiting
    while queue.ready_count():
        world.turn()
        got += taker.bodies()
    assert got == bodies


@pytest.mark.parametrize("mandatory", [False, True])
def test_what_is_not_routed_is_returned_and_confirmed_as_one_by_one(mandatory: bool) -> None:
    seen = []
    for together in (True, False):
        world = World()
        sender = world.peer()
        sender.ask(m.ConfirmSelect())
        pieces = [publish(b"b" * size, "nowhere", mandatory=mandatory) for size in range(30)]
        for data in [b"".join(pieces)] if together else pieces:
            sender.give(data)
        channel = sender.connection.channels[1]
        seen.append((told(sender), channel.counters.values(), channel.confirms.sent))
    assert seen[0] == seen[1]
    assert seen[0][2] == 30


def test_a_publish_that_fails_in_the_middle_closes_its_channel_and_ends_the_passage() -> None:
    world = World()
    sender = world.peer()
    sender.ask(m.QueueDeclare(queue="q", arguments={"x-message-deduplication": True}))
    sender.send(m.ChannelOpen(), channel=2)
    sender.frames()
    queue = world.broker.vhosts["/"].queues["q"]

    class Failing:
        seen = 0

        def holds(self, message: object) -> bool:
            Failing.seen += 1
            if Failing.seen == 5:
                raise Refusal(ErrorKind.PRECONDITION_FAILED, "enough")
            return False

        def keeps(self, message: object) -> None:
            pass

    queue.deduplication = Failing()  # type: ignore[attr-defined]
    repeats = b"".join(publish(b"%d" % number) for number in range(20))
    sender.give(repeats + publish(b"other channel", channel=2))
    (closed,) = sender.methods()
    assert isinstance(closed, m.ChannelClose)
    assert (closed.reply_code, closed.class_id, closed.method_id) == (406, 60, 40)
    assert queue.ready_count() == 5
    assert queue.first().body == b"0"


def test_a_passage_ends_when_its_queue_is_deleted() -> None:
    world = World()
    sender = world.peer()
    sender.ask(m.QueueDeclare(queue="q"))
    sender.give(publish(b"first"))
    vhost = world.broker.vhosts["/"]
    passage = sender.connection.channels[1].passage(0, "", "q")
    assert passage.put(Properties(b"\0\0"), b"second")
    vhost.drop_queue(vhost.queues["q"])
    assert not passage.put(Properties(b"\0\0"), b"third")


def test_a_consumer_with_acknowledgements_does_not_wait_for_a_passage() -> None:
    world = World()
    sender, taker = world.peer(), world.peer()
    sender.ask(m.QueueDeclare(queue="q"))
    taker.ask(m.BasicQos(prefetch_count=1, global_=True))
    taker.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    sender.give(publish(b"first"))
    (consumer,) = world.broker.vhosts["/"].queues["q"].consumers
    sender.connection.channels[1].passage(0, "", "q")
    assert not consumer.waits

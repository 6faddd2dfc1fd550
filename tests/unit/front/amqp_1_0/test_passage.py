"""Settled transfers that pass together do what each does by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import pytest
from msgspec.structs import replace

from harebell.front.limits import LINK_CREDIT
from harebell.front.operations.publishing_channel import RoutedPassage
from harebell.kernels.performatives import SETTLED
from harebell.kernels.transfers_1_0 import TransferPassage
from harebell.wire.v09 import methods as m
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import EMPTY, encode_frame
from harebell.wire.v1.sections import data_section, encode_message, value_section
from harebell.wire.v1.values import Described, Symbol
from tests.unit.front.amqp_0_9_1.world import World, ready
from tests.unit.front.amqp_1_0.peer import LinkPeer
from tests.unit.front.amqp_1_0.states import seen_of

SIZES = [0, 1, 99, 100, 101, 255, 256, 7, 3_000, 5_000, 2] + [20] * 30
PLAIN = [b""]
DURABLE = [encode_message(b"", c.Header(durable=True, priority=4))]
MIXED = [
    *[encode_message(b"", properties=c.Properties(message_id=str(number))) for number in range(9)],
    encode_message(b"", c.Header(ttl=100_000)),
    encode_message(b"", None, {Symbol("x-cc"): ["other"]}),
    encode_message(b"", None, None, c.Properties(message_id="m" * 1_100)),
]


class Case:
    """A sender and a taker of one queue, each with a session."""

    def __init__(self, frame_max: int = 4_096, **settings: Any) -> None:
        self.world = World(message_max=4_000, **settings)
        self.old = self.world.peer()
        self.declare()
        self.sender = LinkPeer(self.world).open()
        self.taker = LinkPeer(self.world).open(frame_max)
        self.address = "/exchanges/amq.direct/q"
        self.mode: int | None = None

    def declare(self, **arguments: Any) -> None:
        names = {name.replace("_", "-"): value for name, value in arguments.items()}
        self.old.ask(m.QueueDelete(queue="q"))
        self.old.ask(m.QueueDeclare(queue="q", arguments=names))
        self.old.ask(m.QueueBind(queue="q", exchange="amq.direct", routing_key="q"))

    def consume(self, mode: int = 1, credit: int = 2_000, window: int = 2_000, **more: Any) -> None:
        source = c.Source("/queues/q", **more)
        self.taker.ask(c.Attach("r", 1, True, mode, None, source, c.Target()))
        self.taker.ask(c.Flow(None, window, 0, 2_048, 1, None, credit))

    def attach(self) -> None:
        about: dict[str, Any] = {"snd_settle_mode": self.mode, "initial_delivery_count": 0}
        target = c.Target(self.address)
        self.sender.ask(c.Attach("s", 0, False, source=c.Source(), target=target, **about))

    def transfers(self, bodies: list[bytes], lists: list[bytes]) -> Iterator[bytes]:
        for body, before in zip(bodies, cycle(lists), strict=False):
            yield self.transfer(before + data_section(body))

    def transfer(self, payload: bytes, **about: Any) -> bytes:
        number = self.sender.sent
        self.sender.sent += 1
        transfer = c.Transfer(0, number, number.to_bytes(4), 0, settled=True, **about)
        return encode_frame(transfer.encoded() + payload)

    def give(self, data: bytes) -> None:
        self.sender.connection.receive(data, self.world.now)

    def passage(self) -> Any:
        return self.sender.connection.intake.passage(0, 0, SETTLED)


Setting = Callable[[Case], None]


def plain(case: Case) -> None:
    case.consume()


def unsettled(case: Case) -> None:
    case.consume(mode=0)


def without_consumer(case: Case) -> None:
    pass


def two_consumers(case: Case) -> None:
    case.consume()
    case.old.send(m.BasicConsume("q", "old", no_ack=True))


def of_another_version(case: Case) -> None:
    case.old.send(m.BasicConsume("q", "old", no_ack=True))


def with_little_credit(case: Case) -> None:
    case.consume(credit=7)


def with_a_small_window(case: Case) -> None:
    case.consume(window=9)


def with_small_frames(case: Case) -> None:
    case.taker = LinkPeer(case.world).open(512)
    case.consume()


def browsing(case: Case) -> None:
    case.consume(distribution_mode=Symbol("copy"))


def selecting(case: Case) -> None:
    chosen = Described(Symbol("apache.org:selector-filter:string"), "n = 1")
    case.consume(filter={Symbol("selector"): chosen})


def traced(case: Case) -> None:
    plain(case)
    vhost = case.world.broker.vhosts["/"]
    vhost.take_metadata(replace(vhost.metadata, tracing=True))


def declared(**arguments: Any) -> Setting:
    def setting(case: Case) -> None:
        case.declare(**arguments)
        plain(case)

    return setting


def no_local(case: Case) -> None:
    plain(case)
    case.old.send(m.BasicConsume("q", "own", no_ack=True, no_local=True))


def fanned_out(case: Case) -> None:
    plain(case)
    case.old.ask(m.QueueDeclare(queue="other"))
    case.old.ask(m.QueueBind(queue="other", exchange="amq.direct", routing_key="q"))


def not_routed(case: Case) -> None:
    case.address = "/exchanges/amq.direct/nowhere"


def by_subject(case: Case) -> None:
    plain(case)
    case.address = "/exchange/amq.direct"


def said_to_be_settled(case: Case) -> None:
    plain(case)
    case.mode = 1


SETTINGS: dict[str, Setting] = {
    "plain": plain,
    "said to be settled": said_to_be_settled,
    "unsettled": unsettled,
    "without a consumer": without_consumer,
    "two consumers": two_consumers,
    "a consumer of another version": of_another_version,
    "with little credit": with_little_credit,
    "with a small window": with_a_small_window,
    "with small frames": with_small_frames,
    "browsing": browsing,
    "selecting": selecting,
    "traced": traced,
    "single active consumer": declared(x_single_active_consumer=True),
    "with a limit": declared(x_max_length=1),
    "refusing": declared(x_max_length=1, x_overflow="reject-publish"),
    "deduplicating": declared(x_message_deduplication=True),
    "with ordering keys": declared(x_group_key="k"),
    "with last values": declared(x_last_value_key="k"),
    "with an expiration": declared(x_message_ttl=5),
    "no-local": no_local,
    "fanned out": fanned_out,
    "not routed": not_routed,
    "by subject": by_subject,
}
AT_ONCE = {
    *("plain", "said to be settled", "with little credit"),
    *("with a small window", "with small frames"),
}
"""Where messages get into the output of the consumer without becoming objects."""
SEEN = {"traced", "no-local", "by subject"}
"""Where something has to see each transfer."""


def play(setting: Setting, lists: list[bytes], between: bytes) -> list[Any]:
    """What both ends got, and all states and counters, after two reads of transfers."""
    case = Case()
    setting(case)
    case.attach()
    seen = []
    for _ in range(2):
        pieces = case.transfers([b"b" * size for size in SIZES], lists)
        case.give(between.join(pieces))
        peers = [case.sender, case.taker]
        seen.append([case.old.frames(), *seen_of(case.world, peers)])
        case.world.turn()
    return seen


@pytest.mark.parametrize("name", SETTINGS)
def test_transfers_that_come_together_do_what_they_do_one_by_one(name: str) -> None:
    for lists in (PLAIN, DURABLE, MIXED):
        together = play(SETTINGS[name], lists, b"")
        assert together == play(SETTINGS[name], lists, EMPTY)


@pytest.mark.parametrize("name", SETTINGS)
def test_messages_pass_only_where_nothing_has_to_see_each(name: str) -> None:
    case = Case()
    SETTINGS[name](case)
    case.attach()
    case.give(case.transfer(data_section(b"first")))
    if name == "browsing":
        assert ready(case.world, "q") == 1
    kind = TransferPassage if name in AT_ONCE else type(None) if name in SEEN else RoutedPassage
    assert isinstance(case.passage(), kind)


def test_transfers_beyond_the_credit_end_the_link_as_one_by_one() -> None:
    seen = []
    for between in (b"", EMPTY):
        case = Case()
        plain(case)
        case.attach()
        pieces = case.transfers([b"b"] * (LINK_CREDIT + 2), PLAIN)
        case.give(between.join(pieces))
        seen.append(seen_of(case.world, [case.sender, case.taker]))
    assert seen[0] == seen[1]
    assert b"amqp:link:transfer-limit-exceeded" in seen[0][0][0]
    assert seen[0][5]["/", "1-0"][0] == LINK_CREDIT


def test_a_passage_lets_in_what_credit_and_windows_allow() -> None:
    case = Case()
    case.consume(credit=70, window=60)
    case.attach()
    case.give(case.transfer(data_section(b"first")))
    assert case.passage().limit == 59
    case.taker.ask(c.Flow(1, 600, 0, 2_048, 1, 1, 70))
    assert case.passage().limit == 70
    case.taker.ask(c.Flow(1, 6_000, 0, 2_048, 1, 1, 6_000))
    assert case.passage().limit == LINK_CREDIT - 1
    case.sender.session.window = 3
    assert case.passage().limit == 3


def test_nothing_passes_while_memory_is_short() -> None:
    case = Case()
    plain(case)
    case.attach()
    case.give(case.transfer(data_section(b"first")))
    assert case.passage() is not None
    case.sender.connection.blocked = True
    assert case.passage() is None


def test_bodies_that_are_no_data_pass_as_they_are() -> None:
    seen = []
    for between in (b"", EMPTY):
        case = Case()
        plain(case)
        case.attach()
        pieces = [case.transfer(value_section(number)) for number in range(30)]
        case.give(between.join(pieces))
        seen.append(seen_of(case.world, [case.sender, case.taker]))
    assert seen[0] == seen[1]
    assert seen[0][0][1].count(value_section(7)) == 1

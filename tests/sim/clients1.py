"""The simulated clients of `clients.py` in AMQP 1.0: windows, credit, and outcomes in ranges."""

from __future__ import annotations

from typing import Any

from harebell.wire import HEADER_1_0, HEADER_1_0_SASL
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import EMPTY, SASL, encode_frame
from tests.robustness.swift1 import BEGIN, Core1, Delivery1, payload_of
from tests.sim.checker import Item
from tests.sim.clients import EVERYWHERE, HEARTBEAT, QUEUES, Actor
from tests.sim.network import Link

_UNCONFIRMED_BYTES = 500_000
"""More would be in memory after the broker has said that it has no room."""
_ADDRESSES = (*(f"/queues/{name}" for name in QUEUES), f"/exchanges/{EVERYWHERE}")
_REACHED = (*((name,) for name in QUEUES), QUEUES)
_PLENTY = 1_000


def _said(performative: Any, kind: int = 0) -> bytes:
    return encode_frame(performative.encoded(), 0, kind)


class Actor1(Actor):
    """A client that connects, stays alive, and comes back; its session has channel 0."""

    alive = EMPTY
    goodbye = _said(c.Close())

    def greet(self, link: Link) -> None:
        """Log in and begin a session, without waiting for an answer."""
        self.core = Core1()
        self.core.on_delivery = self.delivered
        self.core.on_outcome = self.settled
        self.core.on_flow = self.flowed
        size = self.rng.choice((512, 4_096, 131_072))
        # Of its own: another session of a container takes the links of the one before.
        name = f"sim-{self.number}-{self.session}"
        opened = c.Open(name, "vhost:/", size, idle_time_out=HEARTBEAT * 1_000)
        init = c.SaslInit("PLAIN", b"\0guest\0guest")
        link.send(HEADER_1_0_SASL + _said(init, SASL) + HEADER_1_0 + _said(opened) + _said(BEGIN))

    def arrived(self, data: bytes) -> None:
        """Octets were read."""
        core = self.core
        core.feed(data)
        while core.performatives:
            found = core.performatives.pop(0)
            if isinstance(found, c.Begin):
                self.started()
            elif isinstance(found, c.Detach):
                self.detached(found)
            elif isinstance(found, c.Close) and found.error is None:
                self.closed_cleanly()
            elif isinstance(found, c.Close):
                # The clock has leapt; anything else was no reason.
                assert "idle timeout" in found.error.description, f"{self.number}: {found}"
                self.close()
            else:
                assert not isinstance(found, c.End), f"client {self.number}: {found}"

    def say(self, performative: Any) -> None:
        """Send a performative."""
        self.send(_said(performative))

    def detached(self, found: c.Detach) -> None:
        """The queue of a link is gone: come back for its successor."""
        assert found.error is None or found.error.condition == "amqp:resource-deleted", found
        if found.error is not None:
            self.close()

    def delivered(self, delivery: Delivery1) -> None:
        """A message has come."""

    def settled(self, channel: int, first: int, last: int, state: Any) -> None:
        """Messages that were sent have an outcome."""

    def flowed(self, channel: int, flow: c.Flow) -> None:
        """The state of a link."""


class Publisher1(Actor1):
    """Publishes in bursts on three links, as far as credit and window go."""

    def started(self) -> None:
        """Attach the links, then begin."""
        self.limits = [0] * len(_ADDRESSES)
        self.counts = [0] * len(_ADDRESSES)
        self.unconfirmed: dict[int, tuple[int, int]] = {}
        self.cut = self.rng.choice((400, 5_000, 100_000))
        for handle, address in enumerate(_ADDRESSES):
            target = c.Target(address)
            self.say(
                c.Attach(
                    f"s{handle}", handle, source=c.Source(), target=target, initial_delivery_count=0
                )
            )
        self.bursts(self.session, self._publish)

    def _publish(self) -> None:
        if self.link is None or self.link.full or len(self.unconfirmed) >= 200:
            return
        rng = self.rng
        size = rng.choice((0, 0, 10, 100, 5000, 200_000 if rng.random() < 0.1 else 50))
        handle, session = rng.randrange(len(_ADDRESSES)), self.core.sessions[0]
        transfers = 2 + size // self.cut
        waiting = sum(each for _, each in self.unconfirmed.values())
        if self.closing or self.counts[handle] >= self.limits[handle]:
            return
        if session.transfers + transfers > session.room or waiting + size > _UNCONFIRMED_BYTES:
            return
        number = len(self.checker.sent)
        body = b"%d:" % number + rng.randbytes(size)
        durable = rng.random() < 0.8
        source = self.number * 10_000 + self.session
        self.checker.publishes(number, body, source, _REACHED[handle], persistent=durable)
        payload = payload_of(body, durable=durable)
        self.counts[handle] += 1
        delivery, octets = self.core.message(0, handle, payload, cut=self.cut)
        self.unconfirmed[delivery] = number, size
        self.send(octets)

    def flowed(self, channel: int, flow: c.Flow) -> None:
        """Credit."""
        assert flow.handle is not None
        self.limits[flow.handle] = (flow.delivery_count or 0) + (flow.link_credit or 0)

    def settled(self, channel: int, first: int, last: int, state: Any) -> None:
        """Outcomes; a message that found no queue may be in one of two."""
        assert isinstance(state, c.Accepted | c.Released), state
        for delivery in range(first, last + 1):
            number, _ = self.unconfirmed.pop(delivery)
            if isinstance(state, c.Accepted):
                self.checker.confirms(number)
            else:
                self.checker.gives_up(number)

    def ended(self) -> None:
        """What has no outcome stays uncertain."""
        for number, _ in getattr(self, "unconfirmed", {}).values():
            self.checker.gives_up(number)
        self.unconfirmed = {}


class Consumer1(Actor1):
    """Takes messages, accepts most of them some time later, and gives some back."""

    handle = 0

    def started(self) -> None:
        """Choose a queue and how much credit there is."""
        self.queue = self.rng.choice(QUEUES)
        self.acked = set()
        self.patience = self.rng.choice((0.0, 0.0, 0.05, 2.0))
        self.credit = self.rng.choice((1, 5, 50, _PLENTY))
        self.at_once = self.rng.random() < 0.7
        self._attach()
        self._moods(self.session)

    def _attach(self) -> None:
        """A link of its own name and handle: what comes on others is not held any more."""
        self.handle += 1
        self.count = 0
        self.held: dict[int, Item] = {}
        source = c.Source(f"/queues/{self.queue}")
        name = f"r{self.handle}"
        self.say(c.Attach(name, self.handle, True, source=source, target=c.Target()))
        self._give()

    def _give(self, *, drain: bool = False) -> None:
        credit = self.credit - len(self.held)
        self.send(self.core.credited(0, self.handle, self.count, credit, drain=drain))

    def _moods(self, session: int) -> None:
        if self.gone(session):
            return
        mood = self.rng.random()
        if mood < 0.02:
            self.close()
        elif mood < 0.06:
            # Everything that is held goes back.
            self.say(c.Detach(self.handle, True))
            self._attach()
        elif mood < 0.2:
            self._give(drain=True)
        self.world.later(1.0, lambda: self._moods(session))

    def flowed(self, channel: int, flow: c.Flow) -> None:
        """The answer to a drain: nothing is left, and new credit is needed."""
        if flow.handle == self.handle and flow.drain:
            assert flow.link_credit == 0, flow
            self.count = flow.delivery_count or 0
            self._give()

    def delivered(self, delivery: Delivery1) -> None:
        """A delivery: judge it now, answer it later."""
        reader = self.number * 10_000 + self.session
        body, again = delivery.body, delivery.redelivered
        item = self.checker.receives(reader, self.queue, body, again)
        if delivery.handle != self.handle:
            return
        self.count += 1
        tag, session = delivery.number, self.session
        self.held[tag] = item
        self.world.later(self.patience * self.rng.random(), lambda: self._answer(session, tag))

    def _answer(self, session: int, tag: int) -> None:
        if self.link is None or session != self.session or self.closing or tag not in self.held:
            return
        mood = self.rng.random()
        if mood < 0.05:
            back = self.rng.choice((c.Released(), c.Modified(delivery_failed=True)))
            self.say(c.Disposition(True, tag, None, self.at_once, back))
            del self.held[tag]
        else:
            # What is held was not answered; everything else in the range was.
            tags = [each for each in self.held if each <= tag] if mood < 0.2 else [tag]
            self.say(c.Disposition(True, min(tags), tag, self.at_once, c.Accepted()))
            self.settle(self.held, tags)
        self._give()

"""Simulated clients: publishers that count confirms, consumers that count deliveries.

Both reconnect when their connection is lost. They keep the protocol; the network and their own
tempers do the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.model.peer import Event, Reader, call, frame, login, publish
from tests.sim.checker import Checker, Item
from tests.sim.network import Link, World

HEARTBEAT = 5
QUEUES = ("q0", "q1")
EVERYWHERE = "everywhere"
RECONNECT = 0.3


class Actor:
    """A client that connects, stays alive, and comes back.

    Args:
        world: where it lives.
        checker: what it tells about.
        number: who it is.

    Attributes:
        alive: the octets that keep a connection alive.
        goodbye: the octets that close it.
    """

    alive = frame(8, 0, b"")
    goodbye = call(0, m.ConnectionClose(reply_code=200))

    def __init__(self, world: World, checker: Checker, number: int) -> None:
        self.world = world
        self.checker = checker
        self.number = number
        self.session = 0
        self.stopping = False
        self.link: Link | None = None
        self.acked: set[Item] = set()
        self.connect()

    @property
    def rng(self):  # type: ignore[no-untyped-def]
        """The one source of chance."""
        return self.world.rng

    def connect(self) -> None:
        """Begin a new session, unless everything ends."""
        if self.stopping or self.link is not None:
            return
        self.session += 1
        self.closing = False
        link = self.world.connect(self)
        self.link = link
        link.slowness = self.rng.choice((0.0, 0.0, 0.0, 0.05, 0.5))
        self.greet(link)
        self._beat(self.session)

    def greet(self, link: Link) -> None:
        """Log in, and begin."""
        self.reader = Reader()
        link.send(login(heartbeat=HEARTBEAT) + call(1, m.ChannelOpen()))
        self.started()

    def _beat(self, session: int) -> None:
        if self.link is None or session != self.session:
            return
        self.link.send(self.alive)
        self.world.later(HEARTBEAT / 2, lambda: self._beat(session))

    def send(self, data: bytes) -> None:
        """Write, if there is somebody to write to."""
        if self.link is not None and not self.closing:
            self.link.send(data)

    def arrived(self, data: bytes) -> None:
        """Octets were read."""
        for event in self.reader.feed(data):
            if isinstance(event.method, m.ConnectionCloseOk):
                self.closed_cleanly()
            elif isinstance(event.method, m.ConnectionClose | m.ChannelClose):
                raise AssertionError(f"client {self.number} was refused: {event.method}")
            else:
                self.event(event)

    def close(self) -> None:
        """Take leave properly."""
        if not self.closing:
            self.send(self.goodbye)
            self.closing = True

    def lost(self) -> None:
        """The connection is over; another follows."""
        self.link = None
        self.ended()
        self.world.later(RECONNECT, self.connect)

    def stop(self) -> None:
        """Do not come back."""
        self.stopping = True
        self.close()

    def gone(self, session: int) -> bool:
        """Whether a session is not the one that goes on."""
        return self.link is None or session != self.session or self.stopping

    def bursts(self, session: int, publish: Callable[[], None]) -> None:
        """Publish now and then, as long as the session lasts."""
        if self.gone(session):
            return
        for _ in range(self.rng.choice((1, 1, 3, 20))):
            publish()
        if self.rng.random() < 0.01:
            self.close()
        self.world.later(self.rng.expovariate(4), lambda: self.bursts(session, publish))

    def settle(self, held: dict[int, Item], tags: list[int]) -> None:
        """Note that what is held was answered for good."""
        for tag in tags:
            item = held.pop(tag)
            self.checker.acks(item)
            self.acked.add(item)

    def started(self) -> None:
        """A session begins."""

    def ended(self) -> None:
        """A session is over, however."""

    def closed_cleanly(self) -> None:
        """The broker has answered our close: it has heard every answer of this session."""
        self.checker.closes_cleanly(self.acked)

    def event(self, event: Event) -> None:
        """The broker says something."""


class Publisher(Actor):
    """Publishes in bursts, with confirms."""

    numbers = 0

    def started(self) -> None:
        """Ask for confirms, then begin."""
        self.blocked = False
        self.tag = self.confirmed = 0
        self.unconfirmed: dict[int, int] = {}
        self.send(call(1, m.ConfirmSelect()))
        self.bursts(self.session, self._publish)

    def _publish(self) -> None:
        if self.link is None or self.blocked or self.link.full or len(self.unconfirmed) >= 200:
            return
        number = len(self.checker.sent)
        size = self.rng.choice((0, 0, 10, 100, 5000, 200_000 if self.rng.random() < 0.1 else 50))
        body = b"%d:" % number + self.rng.randbytes(size)
        queues = self.rng.choice((QUEUES[:1], QUEUES[1:], QUEUES))
        exchange, key = (EVERYWHERE, "") if len(queues) > 1 else ("", queues[0])
        if not self.closing:
            self.tag += 1
            self.unconfirmed[self.tag] = number
            persistent = self.rng.random() < 0.8
            source = self.number * 10_000 + self.session
            self.checker.publishes(number, body, source, queues, persistent=persistent)
            properties = BasicProperties(delivery_mode=2 if persistent else 1)
            self.send(publish(1, exchange, key, body, properties=properties))

    def event(self, event: Event) -> None:
        """Confirms, and the alarm."""
        method = event.method
        if isinstance(method, m.BasicAck):
            first = self.confirmed + 1 if method.multiple else method.delivery_tag
            for tag in range(first, method.delivery_tag + 1):
                self.checker.confirms(self.unconfirmed.pop(tag))
            self.confirmed = method.delivery_tag
        elif isinstance(method, m.ConnectionBlocked):
            self.blocked = True
        elif isinstance(method, m.ConnectionUnblocked):
            self.blocked = False

    def ended(self) -> None:
        """What is not confirmed stays uncertain."""
        for number in self.unconfirmed.values():
            self.checker.gives_up(number)
        self.unconfirmed = {}


class Consumer(Actor):
    """Takes messages, acks most of them some time later, and gives some back."""

    def started(self) -> None:
        """Choose a queue and a prefetch."""
        self.queue = self.rng.choice(QUEUES)
        self.acked = set()
        self.held: dict[int, Item] = {}
        self.recovering = 0
        self.patience = self.rng.choice((0.0, 0.0, 0.05, 2.0))
        count = self.rng.choice((1, 5, 50, 0))
        self.send(call(1, m.BasicQos(prefetch_count=count)))
        self.send(call(1, m.BasicConsume(queue=self.queue, consumer_tag="c")))
        self._moods(self.session)

    def _moods(self, session: int) -> None:
        if self.gone(session):
            return
        mood = self.rng.random()
        if mood < 0.02:
            self.close()
        elif mood < 0.06:
            self.send(call(1, m.BasicRecover(requeue=True)))
            self.held.clear()
            self.recovering += 1
        self.world.later(1.0, lambda: self._moods(session))

    def event(self, event: Event) -> None:
        """A delivery: judge it now, answer it later."""
        method = event.method
        if isinstance(method, m.BasicRecoverOk):
            self.recovering -= 1
        elif isinstance(method, m.BasicCancel):
            # The queue is gone: come back and consume from its successor.
            self.close()
        if not isinstance(method, m.BasicDeliver):
            return
        reader = self.number * 10_000 + self.session
        item = self.checker.receives(reader, self.queue, event.body, method.redelivered)
        if self.recovering:
            # It was under way when we gave everything back: it is ours no more.
            return
        tag, session = method.delivery_tag, self.session
        self.held[tag] = item
        self.world.later(self.patience * self.rng.random(), lambda: self._answer(session, tag))

    def _answer(self, session: int, tag: int) -> None:
        if self.link is None or session != self.session or self.closing or tag not in self.held:
            return
        mood = self.rng.random()
        if mood < 0.05:
            self.send(call(1, m.BasicNack(tag, False, True)))
            del self.held[tag]
        elif mood < 0.2:
            self.send(call(1, m.BasicAck(tag, True)))
            self.settle(self.held, [each for each in self.held if each <= tag])
        else:
            self.send(call(1, m.BasicAck(tag, False)))
            self.settle(self.held, [tag])

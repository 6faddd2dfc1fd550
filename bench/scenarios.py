"""The scenarios: who sends what to whom, and how it is acknowledged."""

from __future__ import annotations

from msgspec import Struct

STAMP_BYTES = 16
"""Every body begins with its number and the time it was sent, eight bytes each."""

LAST = 2**64 - 1
"""The number of the last body, which has how many came before in place of the time."""


class Scenario(Struct, frozen=True, kw_only=True):
    """One scenario.

    Args:
        name: how it is called.
        says: what it is, for people.
        size: bytes of every body, at least STAMP_BYTES.
        prefetch: the consumer's prefetch; 0 consumes without acknowledging.
        ack_every: the consumer acknowledges that many at once.
        durable: durable queue, persistent messages.
        confirms: most publishes without their confirm; 0 publishes without confirms.
        queues: with more than one, a fanout exchange leads to them.
        readers: with any, the queue is a stream that so many consumers read from its beginning.
        consumers: of each queue, which share its messages.
        apart: whether each of them has a connection of its own, not only a consumer tag.
        beside_disk: compare with a loop that writes and syncs the same bytes.
        bindings: with any, a topic exchange has that many, and one of them matches.
        rate: messages per second; 0 sends as fast as it goes.
        ahead: most messages sent and not received.
        version: the version of AMQP that both ends speak; others than Harebell only speak 0-9-1.
        received_in: the version of the consumer, if it is another one.
        headers: how many headers, or application properties, every message has.
        queue_type: `x-queue-type` of its queues; "" for the broker's default.
        contents: of the bodies: "same", "json", or "random", which cannot be compressed.
    """

    name: str
    says: str
    size: int = 128
    prefetch: int = 0
    ack_every: int = 50
    durable: bool = False
    confirms: int = 0
    queues: int = 1
    readers: int = 0
    consumers: int = 1
    apart: bool = False
    beside_disk: bool = False
    bindings: int = 0
    rate: int = 0
    ahead: int = 10_000
    version: str = "0-9-1"
    received_in: str = ""
    headers: int = 0
    queue_type: str = ""
    contents: str = "same"

    @property
    def queue_names(self) -> list[str]:
        """The queues of the scenario."""
        return [f"bench.{self.name}.{number}" for number in range(self.queues)]

    @property
    def lanes(self) -> list[tuple[str, str]]:
        """Every consumer's tag and queue; each must see every message in order."""
        if not self.readers:
            return [(name, name) for name in self.queue_names]
        name = self.queue_names[0]
        return [(f"{name}.{number}", name) for number in range(self.readers)]

    @property
    def queue_arguments(self) -> dict[str, str]:
        """The arguments that its queues are declared with."""
        kind = "stream" if self.readers else self.queue_type
        return {"x-queue-type": kind} if kind else {}

    @property
    def exchange(self) -> str:
        """The exchange that is published to."""
        return f"bench.{self.name}" if self.queues > 1 or self.bindings else ""

    @property
    def routing_key(self) -> str:
        """The key that is published with."""
        return f"bench.k{self.bindings // 2}.end" if self.bindings else self.queue_names[0]


IDLE = "idle"
"""Not a load: what a broker takes when nothing happens."""

BACKLOG = "f"
"""Not a load of two ends: many messages in, then out."""

SELECTING = "sel"
"""Not a load: a selector on three headers looks at many messages, and selects one of a hundred."""

RESTART = "restart"
"""Not a load: how long a broker with many messages takes to come back."""

RESTART_MORE = "restart5"
"""The same with five times as many messages."""

OPENING = "open"
"""Not a load: a connection and a channel that are opened and closed, one after the other."""

OPENING_ALONE = "open0"
"""The same without a channel: a login and a close."""

OPENING_CONSUMER = "open9"
"""`open` with a consumer on the channel."""

OPENING_LINK = "open10"
"""The same in AMQP 1.0: a connection, a session and a link to a queue."""

OPENINGS = (OPENING_ALONE, OPENING, OPENING_CONSUMER, OPENING_LINK)

TOPICS = "topics"
"""Not a load: a topic exchange with many bindings, and messages that match one of them each."""

FAN_IN = "i100"
"""Not a load of two ends: a hundred connections publish into one durable queue."""

HEARTBEATS = "h10k"
"""Not a load: thousands of connections that only send heartbeats."""

START = "start"
"""Not a load: how long a broker without data takes to start and to stop."""

START_HTTP = "starthttp"
"""The same with the HTTP API."""

WINDOW = 2_000
_MIB = 1_048_576

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(name="a16", says="1 producer, 1 consumer, transient, auto-ack, 16 B", size=16),
        Scenario(name="a128", says="the same, 128 B"),
        Scenario(name="a1k", says="the same, 1 KiB", size=1024),
        Scenario(name="a16k", says="the same, 16 KiB", size=16_384, ahead=1_000),
        Scenario(name="a4m", says="the same, 4 MiB", size=4 * _MIB, ahead=4),
        Scenario(name="a16m", says="the same, 16 MiB", size=16 * _MIB, ahead=2),
        Scenario(name="b128", says="manual ack every 50, prefetch 200", prefetch=200),
        Scenario(
            name="c128",
            says="persistent, confirms with at most 200 outstanding, manual ack",
            prefetch=200,
            durable=True,
            confirms=200,
        ),
        Scenario(
            name="c1k",
            says="c128 with 1 KiB",
            size=1024,
            prefetch=200,
            durable=True,
            confirms=200,
        ),
        Scenario(
            name="c128w",
            says="c128 with 2,000 outstanding, beside a loop that appends and syncs as much",
            prefetch=200,
            durable=True,
            confirms=WINDOW,
            beside_disk=True,
        ),
        Scenario(
            name="c1kw",
            says="c128w with 1 KiB",
            size=1024,
            prefetch=200,
            durable=True,
            confirms=WINDOW,
            beside_disk=True,
        ),
        Scenario(
            name="c1",
            says="c128 with 1 outstanding: the time of a message is that of a commit",
            prefetch=200,
            durable=True,
            confirms=1,
        ),
        Scenario(
            name="s3",
            says="a stream, 1 producer, 3 consumers from its first message, 128 B, per delivery",
            prefetch=500,
            durable=True,
            readers=3,
        ),
        Scenario(name="d10", says="fanout to 10 queues, per delivery", queues=10, ahead=2_000),
        Scenario(name="e1000", says="topic exchange with 1,000 bindings", bindings=1_000),
        *(
            Scenario(name=f"n{count}", says=f"a128 with {count} consumers", consumers=count)
            for count in (10, 100, 1_000)
        ),
        *(
            Scenario(
                name=f"k{count}",
                says=f"b128 with {count} consumers, each on a connection of its own",
                prefetch=200,
                consumers=count,
                apart=True,
            )
            for count in (10, 100, 1_000)
        ),
        Scenario(name="o128", says="a128 in AMQP 0-8", version="0-8"),
        Scenario(name="t128", says="a128 in AMQP 0-10, without accepting", version="0-10"),
        Scenario(name="v128", says="a128 in AMQP 1.0, settled when sent", version="1-0"),
        Scenario(
            name="v128b",
            says="b128 in AMQP 1.0: accepted 50 at once, credit 200",
            version="1-0",
            prefetch=200,
        ),
        Scenario(
            name="v128c",
            says="c128 in AMQP 1.0: durable, at most 200 unsettled",
            version="1-0",
            prefetch=200,
            durable=True,
            confirms=200,
        ),
        Scenario(
            name="v10to9",
            says="a128 with 10 properties, from AMQP 1.0 to 0-9-1",
            version="1-0",
            received_in="0-9-1",
            headers=10,
        ),
        Scenario(
            name="v9to10",
            says="a128 with 10 headers, from AMQP 0-9-1 to 1.0",
            received_in="1-0",
            headers=10,
        ),
        Scenario(name="g5k", says="latency at 5,000 messages per second", rate=5_000),
    )
}

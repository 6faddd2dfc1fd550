"""A message published in one version of AMQP and consumed in another, for every ordered pair.

    python -m tests.interop.matrix          prints the table; `make test` runs the same comparisons

Every property, every type of header, bodies that are empty, small and of 10 MiB, persistent or not:
what the consumer gets has to be what was published.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from harebell.base.values import Long
from harebell.client.blocking import Channel, connect
from harebell.client.message import PROPERTY_NAMES, Delivered
from harebell.client.url import VERSIONS
from tests.patience import SECONDS

SPOKEN = VERSIONS
"""Versions that the client and the broker have in common."""

MOMENT = datetime(2026, 11, 21, 20, 30, 40, tzinfo=UTC)
HEADERS: dict[str, Any] = {
    "bool": True,
    "not": False,
    "int": -7,
    "long": 1 << 40,
    "small-long": Long(5),
    "double": 0.25,
    "decimal": Decimal("12.345"),
    "text": "Grüße",
    "empty": "",
    "octets": b"\x00\xff",
    "moment": MOMENT,
    "void": None,
    "list": [1, "two", [3.0, None]],
    "table": {"inner": {"deep": [True]}},
}
"""A header of every type."""

PLAIN_HEADERS: dict[str, Any] = {
    **HEADERS,
    "bool": 1,
    "not": 0,
    "long": "1099511627776",
    "double": "0.25",
    "void": "",
    "list": {"0": 1, "1": "two", "2": {"0": "3.0", "1": ""}},
    "table": {"inner": {"deep": {"0": 1}}},
}
"""The same for consumers of 0-8 and 0-9, which know five types (docs/protocols/conversion.md)."""

SENT_HEADERS: dict[str, Any] = {
    **PLAIN_HEADERS,
    **{name: HEADERS[name] for name in ("long", "double", "void")},
}
"""The same for a consumer of 0-9 that has sent values of these types itself."""

HEADERS_OF = {"0-8": PLAIN_HEADERS, "0-9": SENT_HEADERS}
"""What consumers of a version get; the others get `HEADERS`."""

PROPERTIES: dict[str, Any] = {
    "content_type": "application/json",
    "content_encoding": "gzip",
    "headers": HEADERS,
    "priority": 7,
    "correlation_id": "c-1",
    "reply_to": "answers",
    "expiration": "3600000",
    "message_id": "m-1",
    "timestamp": MOMENT,
    "type": "order",
    "user_id": "guest",
    "app_id": "matrix",
    "cluster_id": "cluster",
}
"""Every property but the delivery mode."""

SIZES = {"empty": 0, "small": 100, "10 MiB": 10 * 1024 * 1024}
MODES = {"transient": 1, "persistent": 2}


def body_of(size: int) -> bytes:
    """A body of so many octets, none of them like its neighbours."""
    return (bytes(range(256)) * (size // 256 + 1))[:size]


@dataclass(frozen=True)
class Outcome:
    """What became of one message.

    Args:
        publisher, consumer: versions.
        size, mode: keys of `SIZES` and `MODES`.
        lost: names of what was not as it had been.
    """

    publisher: str
    consumer: str
    size: str
    mode: str
    lost: tuple[str, ...]


def expected_by(consumer: str, message: Delivered | None) -> dict[str, Any]:
    """Return the properties that a consumer of a version has to get, but for the delivery mode."""
    expected = {**PROPERTIES, "headers": HEADERS_OF.get(consumer, HEADERS)}
    if consumer == "1-0" and message is not None:
        # The time to live is what is left of it.
        left = message.properties.expiration or ""
        if left.isdecimal() and 0 < int(left) <= int(PROPERTIES["expiration"]):
            expected["expiration"] = left
    return expected


def compare(message: Delivered | None, wanted: dict[str, Any], body: bytes, key: str) -> list[str]:
    """What of a delivery is not as it was published."""
    if message is None:
        return ["message"]
    lost = [] if message.body == body else ["body"]
    lost += [] if message.routing_key == key else ["routing key"]
    for name in sorted(PROPERTY_NAMES - {"headers"}):
        if getattr(message.properties, name) != wanted.get(name):
            lost.append(name)
    for name, value in wanted["headers"].items():
        there = message.headers.get(name, ...)
        if there != value or isinstance(there, bool) != isinstance(value, bool):
            lost.append(f"header {name}")
    lost += [f"header {name} is new" for name in message.headers if name not in HEADERS]
    return lost


class Matrix:
    """A broker, and a channel in each version.

    Args:
        channels: by version.
    """

    def __init__(self, channels: dict[str, Channel]) -> None:
        self._channels = channels

    def exchange(self, publisher: str, consumer: str, size: str, mode: str) -> Outcome:
        """One message on its way."""
        queue = f"matrix.{publisher}.{consumer}"
        sender, receiver = self._channels[publisher], self._channels[consumer]
        sender.declare_queue(queue, durable=True)
        given = {**PROPERTIES, "delivery_mode": MODES[mode]}
        body = body_of(SIZES[size])
        with published(sender):
            sender.publish(body, routing_key=queue, **given)
        messages = receiver.consume(queue, timeout=SECONDS)
        message = next(iter(messages), None)
        expected = {**given, "headers": HEADERS_OF.get(consumer, HEADERS)}
        left = None if consumer != "1-0" or message is None else message.expiration
        if left is not None and 0 < int(left) <= int(given["expiration"]):
            # The header of a delivery has what is left of the time to live.
            expected["expiration"] = left
        lost = compare(message, expected, body, queue)
        if message is not None:
            message.ack()
        messages.cancel()
        sender.delete_queue(queue)
        return Outcome(publisher, consumer, size, mode, tuple(lost))


@contextmanager
def published(channel: Channel) -> Iterator[None]:
    """What is published in it is in its queue afterwards, in versions without confirms, too."""
    if channel.confirms:
        yield
    else:
        with channel.transaction():
            yield


@contextmanager
def matrix(url: str, versions: Sequence[str] = VERSIONS) -> Iterator[Matrix]:
    """A matrix over a broker."""
    # A version waits while others have their turn, and sends no heartbeats meanwhile.
    connections = {version: connect(f"{url}?heartbeat=0", version=version) for version in versions}
    try:
        channels = {version: each.channel() for version, each in connections.items()}
        if "0-9" in channels:
            # From now on it gets the types that it has sent, whoever publishes first.
            channels["0-9"].publish(b"", exchange="amq.fanout", headers=HEADERS, mandatory=False)
        yield Matrix(channels)
    finally:
        for connection in connections.values():
            connection.close()


def table(outcomes: Sequence[Outcome], versions: Sequence[str] = VERSIONS) -> str:
    """Publishers in rows, consumers in columns: how many of the messages came whole."""
    lines = ["published in | " + " | ".join(f"{version:>7}" for version in versions)]
    lines.append("-" * len(lines[0]))
    for publisher in versions:
        cells = []
        for consumer in versions:
            pair = [o for o in outcomes if (o.publisher, o.consumer) == (publisher, consumer)]
            whole = sum(not outcome.lost for outcome in pair)
            cells.append(f"{f'{whole}/{len(pair)}':>7}")
        lines.append(f"{publisher:>12} | " + " | ".join(cells))
    for outcome in outcomes:
        if outcome.lost:
            route = f"{outcome.publisher} to {outcome.consumer}, {outcome.size}, {outcome.mode}"
            lines.append(f"{route}: {', '.join(outcome.lost)}")
    return "\n".join(lines)


def every(found: Matrix, versions: Sequence[str] = VERSIONS) -> list[Outcome]:
    """Every pair, size and mode."""
    return [
        found.exchange(publisher, consumer, size, mode)
        for publisher in versions
        for consumer in versions
        for size in SIZES
        for mode in MODES
    ]


def main() -> int:
    """Print the table for a broker of our own; exit code 1 when something was lost."""
    from tests.running import running_broker

    with running_broker() as broker, matrix(broker.address()) as found:
        outcomes = every(found)
    sys.stdout.write(table(outcomes) + "\n")
    return int(any(outcome.lost for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())

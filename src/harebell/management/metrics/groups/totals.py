"""Metrics of the whole broker: what is open, what came and went, and messages by protocol.

The counters are sums of what is open and what has ended. They are summed in slices, and a channel
that closes meanwhile may be missing from one sum. So the largest value so far is written: a counter
that falls would count as a restart of the broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harebell.base.arrivals import Arrivals
from harebell.base.counters import Counters, Traffic
from harebell.base.slices import Slices
from harebell.front.limits import STATISTICS_SLICE_OBJECTS
from harebell.management.metrics.groups.queues import type_name
from harebell.management.metrics.text import COUNTER, GAUGE, HISTOGRAM, Metric, Row, Value, labels
from harebell.model.dead_letter import DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED
from harebell.model.dead_letter_counts import AT_LEAST_ONCE, AT_MOST_ONCE

if TYPE_CHECKING:
    from harebell.front.common.totals import Sums, VhostAndVersion
    from harebell.management.metrics.source import Source

OPEN = (
    Metric("connections", GAUGE, "Connections."),
    Metric("channels", GAUGE, "Channels, and sessions of AMQP 0-10."),
    Metric("consumers", GAUGE, "Consumers."),
    Metric("queues", GAUGE, "Queues."),
)
CHURN = (
    Metric("connections_opened_total", COUNTER, "Connections that were opened."),
    Metric("connections_closed_total", COUNTER, "Connections that were closed."),
    Metric("channels_opened_total", COUNTER, "Channels that were opened."),
    Metric("channels_closed_total", COUNTER, "Channels that were closed."),
    Metric("queues_declared_total", COUNTER, "Declarations, of existing queues too."),
    Metric("queues_created_total", COUNTER, "Queues that were created."),
    Metric("queues_deleted_total", COUNTER, "Queues that were deleted."),
)
CLOSED = (
    Metric(
        "connections_closed_by_reason_total",
        COUNTER,
        "Connections that were closed: by the client, lost, heartbeat, error, forced.",
    ),
)
PUBLISHED = (
    Metric("global_messages_received_total", COUNTER, "Messages published."),
    Metric(
        "global_messages_received_confirm_total",
        COUNTER,
        "Messages published on channels with confirms.",
    ),
    Metric("global_messages_confirmed_total", COUNTER, "Publishes confirmed."),
    Metric("global_messages_routed_total", COUNTER, "Copies of them that queues were to get."),
    Metric("global_messages_unroutable_returned_total", COUNTER, "Unroutable, returned."),
    Metric("global_messages_unroutable_dropped_total", COUNTER, "Unroutable, dropped."),
)
DELIVERED = (
    Metric("global_messages_delivered_total", COUNTER, "Messages delivered, or taken by a get."),
    Metric(
        "global_messages_delivered_consume_auto_ack_total",
        COUNTER,
        "Deliveries to consumers that do not acknowledge.",
    ),
    Metric(
        "global_messages_delivered_consume_manual_ack_total",
        COUNTER,
        "Deliveries to consumers that acknowledge.",
    ),
    Metric(
        "global_messages_delivered_get_auto_ack_total",
        COUNTER,
        "Messages taken with basic.get, no acknowledgement.",
    ),
    Metric(
        "global_messages_delivered_get_manual_ack_total",
        COUNTER,
        "Messages taken with basic.get and acknowledgement.",
    ),
    Metric("global_messages_redelivered_total", COUNTER, "Deliveries marked as redelivered."),
    Metric("global_messages_acknowledged_total", COUNTER, "Acknowledgements."),
    Metric("global_messages_get_empty_total", COUNTER, "basic.get of an empty queue."),
)
PEERS = (
    Metric("global_publishers", GAUGE, "Channels that have published."),
    Metric("global_consumers", GAUGE, "Consumers."),
)

LOGINS = (
    Metric("auth_attempts_total", COUNTER, "Logins."),
    Metric("auth_attempts_succeeded_total", COUNTER, "Logins that succeeded."),
    Metric("auth_attempts_failed_total", COUNTER, "Logins that failed."),
)
LOGIN_SOURCES = (
    Metric("auth_attempts_detailed_total", COUNTER, "Logins of an address and a user."),
    Metric("auth_attempts_detailed_succeeded_total", COUNTER, "Those that succeeded."),
    Metric("auth_attempts_detailed_failed_total", COUNTER, "Those that failed."),
)
LETTERS = (
    Metric("global_messages_dead_lettered_expired_total", COUNTER, "Dead letters: expired."),
    Metric("global_messages_dead_lettered_rejected_total", COUNTER, "Dead letters: rejected."),
    Metric(
        "global_messages_dead_lettered_maxlen_total",
        COUNTER,
        "Dead letters: their queue was too long.",
    ),
    Metric(
        "global_messages_dead_lettered_delivery_limit_total",
        COUNTER,
        "Dead letters: over the delivery limit.",
    ),
)
LETTERS_STORED = (
    Metric(
        "global_messages_dead_lettered_confirmed_total",
        COUNTER,
        "Dead letters at least once that other queues have stored.",
    ),
)
SIZES = (Metric("message_size_bytes", HISTOGRAM, "Sizes of the bodies that were published."),)

PROTOCOLS = {
    "0-8": "amqp08",
    "0-9": "amqp09",
    "0-9-1": "amqp091",
    "0-10": "amqp010",
    "0-10t": "amqp010t",
}
"""The label `protocol` of each version of AMQP."""
_USUAL = "amqp091"
"""The protocol that is always there, with zeros at first: a rate needs two samples."""
_CLASSIC = "classic"
_REASONS = (EXPIRED, REJECTED, MAXLEN, DELIVERY_LIMIT)
_NOTHING = Arrivals()


class Totals:
    """The counters of the whole broker at one moment.

    Args:
        source: the broker.
        largest: the largest values that were written so far, by their name.

    Attributes:
        counters: of messages, by protocol.
        all: of messages.
        traffic: of bytes.
        publishers: channels that have published, by protocol.
        consumers: by protocol.
        channels: the number of channels.
    """

    def __init__(self, source: Source, largest: dict[str, tuple[int, ...]]) -> None:
        self._source = source
        self._largest = largest
        self.counters: dict[str, Counters] = {_USUAL: Counters()}
        self.all = Counters()
        self.traffic = Traffic()
        self.publishers: dict[str, int] = {_USUAL: 0}
        self.consumers: dict[str, int] = {_USUAL: 0}
        self.channels = 0

    def gather(self) -> Slices[None]:
        """Sum everything; each step is one slice of work."""
        registry = self._source.registry
        sums = yield from registry.sums()
        publishers = {_USUAL: 0}
        consumers = {_USUAL: 0}
        channels = 0
        for piece in registry.in_pieces(STATISTICS_SLICE_OBJECTS):
            for connection in piece:
                protocol = PROTOCOLS.get(connection.version)
                if protocol is None or connection.closing:
                    continue
                channels += len(connection.channels)
                for channel in connection.channels.values():
                    published = channel.counters.publish > 0
                    publishers[protocol] = publishers.get(protocol, 0) + published
                    consuming = len(channel.consumers or ())
                    consumers[protocol] = consumers.get(protocol, 0) + consuming
            yield
        self.publishers, self.consumers, self.channels = publishers, consumers, channels
        self._keep(sums)

    def _keep(self, totals: dict[VhostAndVersion, Sums]) -> None:
        """Keep the sums by protocol and of all."""
        by_protocol = {_USUAL: Counters()}
        everything, traffic = Counters(), Traffic()
        for (_, version), sums in totals.items():
            traffic.add(sums.traffic)
            everything.add(sums.counters)
            protocol = PROTOCOLS.get(version)
            if protocol is not None:
                by_protocol.setdefault(protocol, Counters()).add(sums.counters)
        self.counters, self.all, self.traffic = by_protocol, everything, traffic

    def never_less(self, what: str, values: tuple[int, ...]) -> tuple[int, ...]:
        """Return values, each at least as large as at the last call for the same thing."""
        before = self._largest.get(what, values)
        largest = tuple([max(pair) for pair in zip(values, before, strict=True)])
        self._largest[what] = largest
        return largest

    # --- rows -----------------------------------------------------------------------------------

    def open_rows(self) -> Iterator[Row]:
        """Yield the row of `OPEN`."""
        vhosts = self._source.broker.vhosts.values()
        queues = sum([len(vhost.queues) for vhost in vhosts])
        connections = len(self._source.registry.connections)
        yield "", (connections, self.channels, sum(self.consumers.values()), queues)

    def churn_rows(self) -> Iterator[Row]:
        """Yield the row of `CHURN`."""
        churn = self._source.broker.churn
        yield (
            "",
            (
                churn.connection_created,
                churn.connection_closed,
                churn.channel_created,
                churn.channel_closed,
                churn.queue_declared,
                churn.queue_created,
                churn.queue_deleted,
            ),
        )

    def closed_rows(self) -> Iterator[Row]:
        """Yield a row of `CLOSED` for each reason."""
        for reason, number in self._source.broker.churn.closed_by.items():
            yield labels(reason=reason), (number,)

    def published_rows(self) -> Iterator[Row]:
        """Yield a row of `PUBLISHED` for each protocol."""
        arrivals = self._arrivals()
        for protocol, counted in sorted(self.counters.items()):
            arrived = arrivals.get(protocol, _NOTHING)
            values = (
                counted.publish,
                arrived.wanting_confirm,
                counted.confirm,
                arrived.routed,
                counted.return_unroutable,
                counted.drop_unroutable,
            )
            yield _labels(protocol), self.never_less(f"published {protocol}", values)

    def login_rows(self) -> Iterator[Row]:
        """Yield a row of `LOGINS` for each protocol, HTTP included."""
        logins = {_USUAL: (0, 0)}
        for version, (succeeded, failed) in self._source.registry.logins.items():
            protocol = PROTOCOLS.get(version, "unknown")
            before = logins.get(protocol, (0, 0))
            logins[protocol] = before[0] + succeeded, before[1] + failed
        for row in self._source.login_attempts.by_protocol():
            counts = row["auth_attempts_succeeded"], row["auth_attempts_failed"]
            logins[str(row["protocol"])] = counts
        for protocol, both in sorted(logins.items()):
            yield _labels(protocol), (sum(both), *both)

    def login_source_rows(self) -> Iterator[Row]:
        """Yield a row of `LOGIN_SOURCES` for each of the most recent addresses and users."""
        for row in self._source.login_attempts.by_source():
            both = row["auth_attempts_succeeded"], row["auth_attempts_failed"]
            text = labels(
                protocol=PROTOCOLS.get(str(row["protocol"]), str(row["protocol"])),
                remote_address=str(row["remote_address"]),
                username=str(row["username"]),
            )
            yield text, (sum(both), *both)

    def letter_rows(self) -> Iterator[Row]:
        """Yield a row of `LETTERS` for each type of queue and strategy."""
        letters = {(type_name(_CLASSIC), AT_MOST_ONCE): dict.fromkeys(_REASONS, 0)}
        for (kind, strategy, reason), number in self._source.broker.letter_counts.sent.items():
            # Several kinds of queue are of one type.
            counts = letters.setdefault((type_name(kind), strategy), dict.fromkeys(_REASONS, 0))
            counts[reason] = counts.get(reason, 0) + number
        for (name, strategy), counts in sorted(letters.items()):
            text = labels(queue_type=name, dead_letter_strategy=strategy)
            yield text, tuple([counts[reason] for reason in _REASONS])

    def letter_stored_rows(self) -> Iterator[Row]:
        """Yield a row of `LETTERS_STORED` for each type of queue that has dead letters so."""
        counts = self._source.broker.letter_counts
        letters: dict[str, int] = {}
        for kind in {kind for kind, strategy, _ in counts.sent if strategy == AT_LEAST_ONCE}:
            name = type_name(kind)
            letters[name] = letters.get(name, 0) + counts.confirmed.get(kind, 0)
        for name, confirmed in sorted(letters.items()):
            yield labels(queue_type=name, dead_letter_strategy=AT_LEAST_ONCE), (confirmed,)

    def size_rows(self) -> Iterator[Row]:
        """Yield a row of `SIZES` for each protocol."""
        for protocol, arrived in sorted(self._arrivals().items()):
            yield _labels(protocol), (arrived.sizes(),)

    def _arrivals(self) -> dict[str, Arrivals]:
        """Return the counters of published messages by protocol."""
        arrivals = {
            PROTOCOLS[version]: arrived
            for version, arrived in self._source.registry.arrivals.items()
            if version in PROTOCOLS
        }
        return {_USUAL: _NOTHING, **arrivals}

    def delivered_rows(self) -> Iterator[Row]:
        """Yield a row of `DELIVERED` for each protocol."""
        for protocol, counted in sorted(self.counters.items()):
            four = (counted.deliver_no_ack, counted.deliver, counted.get_no_ack, counted.get)
            values = (sum(four), *four, counted.redeliver, counted.ack, counted.get_empty)
            yield _labels(protocol), self.never_less(f"delivered {protocol}", values)

    def peer_rows(self) -> Iterator[Row]:
        """Yield a row of `PEERS` for each protocol."""
        for protocol in sorted(self.publishers):
            values: tuple[Value, ...] = (
                self.publishers[protocol],
                self.consumers.get(protocol, 0),
            )
            yield _labels(protocol), values

    def channel_published_row(self) -> Row:
        """Return the sums of `connections.CHANNEL_PUBLISHED`, closed channels included."""
        every = self.all
        values = (every.publish, every.confirm, every.return_unroutable, every.drop_unroutable)
        return "", self.never_less("channel published", values)

    def channel_delivered_row(self) -> Row:
        """Return the sums of `connections.CHANNEL_DELIVERED`, closed channels included."""
        every = self.all
        values = (
            every.get,
            every.get_no_ack,
            every.deliver,
            every.deliver_no_ack,
            every.redeliver,
            every.ack,
            every.get_empty,
        )
        return "", self.never_less("channel delivered", values)

    def traffic_row(self) -> Row:
        """Return the sums of `connections.TRAFFIC` and `connections.PACKETS`."""
        every = self.traffic
        values = (every.recv_oct, every.send_oct, every.recv_cnt, every.send_cnt)
        return "", self.never_less("traffic", values)


def _labels(protocol: str) -> str:
    return f'{{protocol="{protocol}"}}'

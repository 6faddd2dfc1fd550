"""The message: what the wire makes, the model routes and the store keeps.

One object per message is all that the hot path can afford, so the layers of row 2 share this one.
It keeps the bytes that it came with; a peer of another protocol family gets a converted copy, made
when it is needed.
"""

from __future__ import annotations

from harebell.base.limits import MESSAGE_OVERHEAD_BYTES

FAMILY_09 = 9
"""Properties encoded as AMQP 0-8, 0-9 and 0-9-1 do (property flags, then values)."""

FAMILY_FILE = 70
"""The property list of class `file`: flags and values like 0-9's, other properties."""

FAMILY_STREAM = 80
"""The property list of class `stream`."""

FAMILY_010 = 10
"""The structs of a header segment of final 0-10, each with its size and code, as received."""

FAMILY_010T = 11
"""The property fields of a message.transfer of transitional 0-10, as that method has them."""

FAMILY_BLIND = 12
"""Properties as in `FAMILY_09`, with a header BCC that no consumer sees."""

PERSISTENT = 2
"""The delivery-mode of a message that is to survive a restart."""

_OVERHEAD = MESSAGE_OVERHEAD_BYTES


class Properties:
    """A property list as its publisher encoded it, and what the broker itself needs of it.

    Equal lists that follow each other on a connection share one object.

    Args:
        raw: the encoded list: property flags and values.
        delivery_mode: 1 transient, 2 persistent, 0 when absent.
        priority: 0 to 255, -1 when absent.
        has_headers: whether a header table is present.
        suspect: whether there is something that publishing has to look into: a reply-to, an
            expiration, a user-id, or what may be a header CC or BCC.
        family: how it is encoded.
    """

    __slots__ = ("delivery_mode", "family", "has_headers", "priority", "raw", "suspect")

    def __init__(
        self,
        raw: bytes,
        delivery_mode: int = 0,
        priority: int = -1,
        has_headers: bool = False,
        suspect: bool = False,
        family: int = FAMILY_09,
    ) -> None:
        self.raw = raw
        self.delivery_mode = delivery_mode
        self.priority = priority
        self.has_headers = has_headers
        self.suspect = suspect
        self.family = family

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Properties) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"Properties({self.raw!r})"


class Message:
    """One published message.

    What its properties say of the delivery is kept beside their encoded form, not in the object
    they came in: a message then refers to nothing that could refer back, and the garbage collector
    need not know of the millions of them.

    Args:
        exchange: the exchange it was published to.
        routing_key: the routing key it was published with.
        properties: its encoded properties.
        body: its body, unchanged for ever.

    Attributes:
        raw: the encoded property list.
        delivery_mode, priority, has_headers, family: as in `Properties`.
        timestamp: when it came to its log, in milliseconds since 1970; 0 when it was not read from
            one.
        offset: its offset in a stream, which its consumers see; -1 elsewhere.
        origin: the connection that published it, where a queue may want to know; 0 elsewhere.
        deliveries: how many deliveries of it have failed, which a quorum queue's consumers are
            told; 0 elsewhere.
        holders: how many logs hold this object in memory, as the memory gauge counts them.
        due: when it expires, in milliseconds since 1970 by the clock that never jumps; in the log
            of a delaying exchange, when it goes on. 0 is never.
    """

    __slots__ = (
        "body",
        "deliveries",
        "delivery_mode",
        "due",
        "exchange",
        "family",
        "has_headers",
        "holders",
        "offset",
        "origin",
        "priority",
        "raw",
        "routing_key",
        "timestamp",
    )

    body: bytes
    deliveries: int
    delivery_mode: int
    due: int
    exchange: str
    family: int
    has_headers: bool
    holders: int
    offset: int
    origin: int
    priority: int
    raw: bytes
    routing_key: str
    timestamp: int

    def __init__(
        self, exchange: str, routing_key: str, properties: Properties, body: bytes
    ) -> None:
        _fill(self, exchange, routing_key, properties, body)

    def footprint(self) -> int:
        """What this message is counted in memory, in octets."""
        return len(self.body) + len(self.raw) + _OVERHEAD

    def __repr__(self) -> str:
        return f"Message({self.exchange!r}, {self.routing_key!r}, {len(self.body)} octets)"


def _fill(
    message: Message, exchange: str, routing_key: str, properties: Properties, body: bytes
) -> int:
    message.exchange = exchange
    message.routing_key = routing_key
    message.raw = properties.raw
    message.delivery_mode = properties.delivery_mode
    message.priority = properties.priority
    message.has_headers = properties.has_headers
    message.family = properties.family
    message.body = body
    message.timestamp = 0
    message.offset = -1
    message.origin = 0
    message.deliveries = 0
    message.holders = 0
    message.due = 0
    return 0


def new_message(exchange: str, routing_key: str, properties: Properties, body: bytes) -> Message:
    """A message, made without the cost of a call through Python; for the hot path."""
    message = Message.__new__(Message)
    _fill(message, exchange, routing_key, properties, body)
    return message


def copy_message(message: Message, exchange: str, routing_key: str) -> Message:
    """A message of its own with the same properties and body."""
    copy = Message.__new__(Message)
    copy.exchange = exchange
    copy.routing_key = routing_key
    copy.raw = message.raw
    copy.delivery_mode = message.delivery_mode
    copy.priority = message.priority
    copy.has_headers = message.has_headers
    copy.family = message.family
    copy.body = message.body
    copy.timestamp = message.timestamp
    copy.offset = message.offset
    copy.origin = message.origin
    copy.deliveries = message.deliveries
    copy.holders = 0
    copy.due = message.due
    return copy

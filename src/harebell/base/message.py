"""The message: made by the wire, routed by the model, kept by the store.

The hot path can afford one object per message, so these layers share it. It keeps the encoded bytes
of its publisher; a peer of another protocol family gets a copy that is converted on delivery.
"""

from __future__ import annotations

from harebell.base.c_types import C, Done, Readonly, i16, i32, i64, isize, u8
from harebell.base.limits import MESSAGE_OVERHEAD_BYTES

FAMILY_09 = 9
"""Properties in the encoding of AMQP 0-8, 0-9 and 0-9-1 (property flags, then values)."""

FAMILY_FILE = 70
"""The property list of class `file`: flags and values as in 0-9, other properties."""

FAMILY_STREAM = 80
"""The property list of class `stream`."""

FAMILY_010 = 10
"""The structs of a header segment of final 0-10, each with its size and code, as received."""

FAMILY_010T = 11
"""The property fields of a message.transfer of transitional 0-10, as that method has them."""

FAMILY_09_BCC = 12
"""Properties as in `FAMILY_09`, with a header BCC that no consumer sees."""

FAMILY_1_0 = 100
"""The sections of AMQP 1.0 before the body, as received but without delivery annotations: header,
message annotations, properties, application properties. The body is the content of the only data
section, which was encoded in the shortest way; there is no footer."""

FAMILY_1_0_SECTIONS = 101
"""As `FAMILY_1_0`, but the body is the encoded sections of the body and the footer, as received."""

PERSISTENT = 2
"""The delivery-mode of a persistent message."""

_OVERHEAD: isize = MESSAGE_OVERHEAD_BYTES


class Properties:
    """An encoded property list, and the properties that the broker uses.

    Equal lists that follow each other on a connection share one object.

    Args:
        raw: the encoded list: property flags and values.
        delivery_mode: 1 transient, 2 persistent, 0 when absent.
        priority: 0 to 255, -1 when absent.
        has_headers: whether a header table is present.
        suspect: whether publishing has to decode something: a reply-to, an expiration, a user-id,
            or what may be a header CC or BCC.
        family: the encoding.
    """

    def __init__(
        self,
        raw: bytes,
        delivery_mode: int = 0,
        priority: int = -1,
        has_headers: bool = False,
        suspect: bool = False,
        family: i32 = FAMILY_09,
    ) -> None:
        self.raw: Readonly[bytes] = raw
        self.delivery_mode: Readonly[i32] = delivery_mode
        self.priority: Readonly[i32] = priority
        self.has_headers: Readonly[bool] = has_headers
        self.suspect: Readonly[bool] = suspect
        self.family = family

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Properties) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __reduce__(self) -> tuple[type[Properties], tuple[object, ...]]:
        """Let programs pickle messages of the client, which have these."""
        return Properties, (
            self.raw,
            self.delivery_mode,
            self.priority,
            self.has_headers,
            self.suspect,
            self.family,
        )

    def __repr__(self) -> str:
        return f"Properties({self.raw!r})"


class Message:
    """A published message.

    Properties that the broker uses are copied from `Properties`, not referenced: a message then has
    no references that could form a cycle, so the garbage collector need not track millions of
    messages.

    Args:
        exchange: the exchange it was published to.
        routing_key: the routing key it was published with.
        properties: its encoded properties.
        body: its body, which never changes.

    Attributes:
        raw: the encoded property list.
        delivery_mode, priority, has_headers, family: as in `Properties`.
        timestamp: when it was appended to its log, in milliseconds since 1970; 0 if it was not read
            from one.
        offset: its offset in a stream; -1 elsewhere.
        origin: the connection that published it, if a queue has no-local consumers; else 0.
        deliveries: its failed deliveries. In a log, those of the queues where it died before; the
            message that a consumer gets has those of its queue, too.
        holders: how many logs have this object in memory; for the memory gauge.
        due: when it expires, in milliseconds of the monotonic clock; in the log of a delaying
            exchange, when it is routed. 0 is never.
        once: what deduplicating exchanges hear about it (`harebell.model.feedback`); None for most.
    """

    exchange: Readonly[str]
    routing_key: Readonly[str]
    raw: Readonly[bytes]
    body: Readonly[bytes]
    delivery_mode: Readonly[u8]
    family: Readonly[u8]
    priority: Readonly[i16]
    has_headers: Readonly[bool]
    deliveries: i32
    holders: i32
    timestamp: i64
    offset: i64
    origin: i64
    due: i64
    once: bytes | None

    def __init__(
        self, exchange: str, routing_key: str, properties: Properties, body: bytes
    ) -> None:
        _fill(self, exchange, routing_key, properties, body)

    def footprint(self) -> isize:
        """Return the size of the message in memory, in bytes, as the gauge counts it."""
        return len(self.body) + len(self.raw) + _OVERHEAD

    def __repr__(self) -> str:
        return f"Message({self.exchange!r}, {self.routing_key!r}, {len(self.body)} bytes)"


def _fill(
    message: Message, exchange: str, routing_key: str, properties: Properties, body: bytes
) -> Done:
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
    message.once = None
    return 0


def new_message(exchange: str, routing_key: str, properties: Properties, body: bytes) -> C[Message]:
    """Make a message without the cost of a call through Python; for the hot path."""
    message = Message.__new__(Message)
    _fill(message, exchange, routing_key, properties, body)
    return message


def change_properties(message: Message, other: Message) -> Done:
    """Give a message the properties of another one, before a log or a queue has it.

    A message that hides its blind keys goes on hiding them.
    """
    message.raw = other.raw
    message.delivery_mode = other.delivery_mode
    message.priority = other.priority
    message.has_headers = other.has_headers
    if message.family != FAMILY_09_BCC:
        message.family = other.family
    return 0


def copy_message(message: Message, exchange: str, routing_key: str) -> C[Message]:
    """Return a new message with the same properties and body."""
    copy: Message = Message.__new__(Message)
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
    copy.once = None
    return copy

"""Messages for applications: a body, a route, and properties by name.

Properties stay encoded until one is read, and equal properties are encoded once:
most messages of a program differ only in their body.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Generic, Self, TypedDict, TypeVar, overload

from harebell.base.message import Message as WireMessage
from harebell.base.message import Properties
from harebell.client.codecs import JSON, Codec, json_of
from harebell.wire.v09.content import BasicProperties, decode_properties, encode_properties

T = TypeVar("T")
Kind = type[T]
"""A class, where `type` is a property."""
Body = bytes | bytearray | memoryview

_CACHE_ENTRIES = 256
_TRANSIENT_MODE = 1
PERSISTENT_MODE = 2
"""Values of delivery_mode (AMQP 0-9-1, class basic)."""


class PropertyArguments(TypedDict, total=False):
    """The properties of a message, as keyword arguments (AMQP 0-9-1, class basic)."""

    content_type: str
    content_encoding: str
    headers: Mapping[str, Any]
    delivery_mode: int
    priority: int
    correlation_id: str
    reply_to: str
    expiration: str
    message_id: str
    timestamp: datetime
    type: str
    user_id: str
    app_id: str
    cluster_id: str
    persistent: bool


_PERSISTENT = "persistent"
"""Stands for delivery_mode: True is 2, and False is 1."""
PROPERTY_NAMES = frozenset(PropertyArguments.__annotations__) - {_PERSISTENT}


class _Property(Generic[T]):
    """A property as an attribute of the message."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, content: None, owner: type) -> _Property[T]: ...
    @overload
    def __get__(self, content: Content, owner: type) -> T | None: ...
    def __get__(self, content: Content | None, owner: type) -> T | _Property[T] | None:
        if content is None:
            return self
        value: T | None = getattr(content.properties, self._name)
        return value


class Content:
    """A body with its properties; common to published and received messages.

    Args:
        body: the bytes of the message, not decoded.
        exchange: the exchange that it was or will be published to, "" for the default exchange.
        routing_key: the key that it was or will be published with.
        encoded: its properties, encoded.
    """

    __slots__ = ("_properties", "body", "encoded", "exchange", "routing_key")

    content_type = _Property[str]()
    content_encoding = _Property[str]()
    delivery_mode = _Property[int]()
    priority = _Property[int]()
    correlation_id = _Property[str]()
    reply_to = _Property[str]()
    expiration = _Property[str]()
    message_id = _Property[str]()
    timestamp = _Property[datetime]()
    type = _Property[str]()
    user_id = _Property[str]()
    app_id = _Property[str]()
    cluster_id = _Property[str]()

    def __init__(self, body: bytes, exchange: str, routing_key: str, encoded: Properties) -> None:
        self.body = body
        self.exchange = exchange
        self.routing_key = routing_key
        self.encoded = encoded
        self._properties: BasicProperties | None = None

    @property
    def properties(self) -> BasicProperties:
        """All properties; missing ones are None."""
        if self._properties is None:
            self._properties = decode_properties(self.encoded.raw)
        return self._properties

    @property
    def persistent(self) -> bool:
        """Whether a durable queue keeps it over a restart of the broker (delivery_mode 2)."""
        return self.delivery_mode == PERSISTENT_MODE

    @property
    def headers(self) -> dict[str, Any]:
        """The header table, empty if the message has none."""
        return self.properties.headers or {}

    @overload
    def json(self) -> Any: ...
    @overload
    def json(self, kind: Kind[T]) -> T: ...
    def json(self, kind: Any = Any) -> Any:
        """Return the value of a JSON body.

        Args:
            kind: its type; without it the value is as from the module `json`.

        Raises:
            Undecodable: the body is no JSON, or of another type.
        """
        return json_of(kind).decode(self.body)

    def decode(self, codec: Codec[T]) -> T:
        """Return the value of the body.

        Raises:
            Undecodable: the body is not what the codec expects.
        """
        return codec.decode(self.body)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} exchange={self.exchange!r} "
            f"routing_key={self.routing_key!r} {len(self.body)} bytes{self._more()}>"
        )

    def _more(self) -> str:
        """Return the additional fields that `repr` shows."""
        return ""


class Message(Content):
    """A message to publish.

    Args:
        body: the body; text must be encoded by the caller.
        exchange: the exchange; None uses that of the call of `publish`.
        routing_key: the routing key; None uses that of the call of `publish`.
        properties: persistent, content_type, headers and so on.
    """

    __slots__ = ("has_exchange", "has_routing_key")

    def __init__(
        self,
        body: Body,
        *,
        exchange: str | None = None,
        routing_key: str | None = None,
        **properties: Any,
    ) -> None:
        super().__init__(
            body_bytes(body), exchange or "", routing_key or "", encode_arguments(properties)
        )
        self.has_exchange = exchange is not None
        self.has_routing_key = routing_key is not None

    @classmethod
    def of(
        cls,
        value: Any,
        codec: Codec[Any] = JSON,
        *,
        exchange: str | None = None,
        routing_key: str | None = None,
        **properties: Any,
    ) -> Self:
        """Return a message whose body is an encoded value.

        Args:
            value: what the codec takes.
            codec: JSON, MESSAGE_PACK, TEXT or another one (`harebell.client.codecs`).
            exchange: None uses that of the call of `publish`.
            routing_key: None uses that of the call of `publish`.
            properties: persistent, headers and so on; `content_type` is that of the codec.

        Raises:
            TypeError: the value has no form in this codec.
        """
        given = {"content_type": codec.content_type, **properties}
        return cls(codec.encode(value), exchange=exchange, routing_key=routing_key, **given)


class ReturnedMessage(Content):
    """A returned mandatory message."""

    __slots__ = ()


class Delivered(Content):
    """A message from a queue, as returned by `consume` and `get`.

    Args:
        delivery_tag: its number on its channel.
        redelivered: whether it was delivered before.
        consumer_tag: tag of its consumer, "" from `get`.
        message_count: from `get`, number of messages left in the queue.
    """

    __slots__ = ("consumer_tag", "delivery_tag", "message_count", "redelivered")

    def __init__(
        self,
        body: bytes,
        exchange: str,
        routing_key: str,
        encoded: Properties,
        delivery_tag: int,
        redelivered: bool,
        consumer_tag: str = "",
        message_count: int | None = None,
    ) -> None:
        super().__init__(body, exchange, routing_key, encoded)
        self.delivery_tag = delivery_tag
        self.redelivered = redelivered
        self.consumer_tag = consumer_tag
        self.message_count = message_count

    def _more(self) -> str:
        return f" delivery_tag={self.delivery_tag}{' redelivered' if self.redelivered else ''}"


def body_bytes(body: Body) -> bytes:
    """Return the body as bytes.

    Raises:
        TypeError: it is text, or another type without bytes.
    """
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        raise TypeError("a message body is bytes: encode the text, for example text.encode()")
    if isinstance(body, bytearray | memoryview):
        return bytes(body)
    raise TypeError(f"a message body is bytes, not {type(body).__name__}")


def outgoing(
    body: Body | Message, exchange: str, routing_key: str, arguments: Mapping[str, Any]
) -> WireMessage:
    """Return the message for the arguments of `publish`.

    Args:
        body: a body, or a message that may have its own exchange and routing key.
        exchange: the exchange, unless the message has its own.
        routing_key: the routing key, unless the message has its own.
        arguments: properties by name; not used for a message, which has its own.
    """
    if not isinstance(body, Message):
        return WireMessage(exchange, routing_key, encode_arguments(arguments), body_bytes(body))
    if arguments:
        raise TypeError("a Message brings its own properties: give them to Message(...)")
    return WireMessage(
        body.exchange if body.has_exchange else exchange,
        body.routing_key if body.has_routing_key else routing_key,
        body.encoded,
        body.body,
    )


Item = Body | Message | tuple[str, Body]


def outgoing_item(
    item: Item, exchange: str, routing_key: str, encoded: Properties, arguments: Mapping[str, Any]
) -> WireMessage:
    """Return the message for an item of `publish_many`: body, (routing key, body) or message."""
    if isinstance(item, bytes):
        return WireMessage(exchange, routing_key, encoded, item)
    if isinstance(item, tuple):
        key, body = item
        return WireMessage(exchange, key, encoded, body_bytes(body))
    return outgoing(item, exchange, routing_key, arguments)


_cache: dict[tuple[tuple[str, Any], ...], Properties] = {}


def encode_arguments(arguments: Mapping[str, Any]) -> Properties:
    """Encode properties given by name. Results without headers are cached.

    Raises:
        TypeError: a name is not a property, or a value has the wrong type.
        ValueError: a value that does not fit.
    """
    if not arguments:
        return NO_PROPERTIES
    if _PERSISTENT in arguments:
        arguments = _with_mode(arguments)
    if "headers" in arguments or "timestamp" in arguments or "message_id" in arguments:
        return _encode(arguments)
    # True equals 1 and has the same hash: the types must be part of the key.
    key = tuple(
        (name, value) for name, value in arguments.items() if not isinstance(value, bool | float)
    )
    if len(key) != len(arguments):
        return _encode(arguments)
    try:
        encoded = _cache.get(key)
    except TypeError:
        return _encode(arguments)
    if encoded is None:
        encoded = _encode(arguments)
        if len(_cache) >= _CACHE_ENTRIES:
            _cache.clear()
        _cache[key] = encoded
    return encoded


def encode_once(arguments: Mapping[str, Any]) -> Properties:
    """Encode properties that differ each time, without the cache."""
    return _encode(_with_mode(arguments) if _PERSISTENT in arguments else arguments)


def _with_mode(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with `delivery_mode` in place of `persistent`."""
    if "delivery_mode" in arguments:
        raise TypeError("persistent stands for delivery_mode: give one of them")
    given = dict(arguments)
    persistent = given.pop(_PERSISTENT)
    if not isinstance(persistent, bool):
        raise TypeError(f"persistent is True or False, not {persistent!r}")
    return {**given, "delivery_mode": PERSISTENT_MODE if persistent else _TRANSIENT_MODE}


def _encode(arguments: Mapping[str, Any]) -> Properties:
    unknown = [name for name in arguments if name not in PROPERTY_NAMES]
    if unknown:
        raise TypeError(
            f"{unknown[0]!r} is no property of a message; "
            f"they are {', '.join(sorted((*PROPERTY_NAMES, _PERSISTENT)))}"
        )
    return Properties(encode_properties(BasicProperties(**arguments)))


NO_PROPERTIES = Properties(b"\x00\x00")

"""Codecs: values as bodies of messages, and bodies as values of a type.

    ORDERS = Json(Order)
    channel.publish(Message.of(order, ORDERS, persistent=True), routing_key="orders")
    order = message.decode(ORDERS)

A type is what msgspec decodes: built-in types, dataclasses, `msgspec.Struct`, TypedDict, attrs.
Models of pydantic are decoded and encoded by their own methods, also inside other types.
"""

from __future__ import annotations

import functools
from typing import Any, Generic, Protocol, TypeVar, overload

import msgspec

from harebell.base.errors import HarebellError

T = TypeVar("T")

_VALIDATE = "model_validate"
_DUMP = "model_dump"
_PARTS = (msgspec.inspect.Type, msgspec.inspect.Field)


class Undecodable(HarebellError, ValueError):
    """The body of a message is not what a codec expects.

    Args:
        format: what was expected, for example "JSON".
        reason: what is wrong, and where.
    """

    def __init__(self, format: str, reason: str) -> None:  # noqa: A002 - the word for it
        super().__init__(f"the body is not the expected {format}: {reason}")
        self.format = format
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.format, self.reason)


class Codec(Generic[T]):
    """The base of codecs: a program's own one has these two methods and the content type.

    Attributes:
        content_type: the property of messages with such a body.
    """

    content_type: str

    def encode(self, value: T) -> bytes:
        """Return a value as a body.

        Raises:
            TypeError: it has no such form.
        """
        raise NotImplementedError

    def decode(self, body: bytes) -> T:
        """Return the value of a body.

        Raises:
            Undecodable: it is not valid, or of another type.
        """
        raise NotImplementedError


class _Decoder(Protocol):
    def decode(self, body: bytes, /) -> Any:
        """Return the value of a body."""


class _Structured(Codec[T]):
    """A codec of msgspec."""

    _format: str
    _decoder: _Decoder
    _type: Any

    def decode(self, body: bytes) -> T:
        """Return the value of a body; see `Codec.decode`."""
        try:
            value: T = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Undecodable(self._format, str(error)) from error
        return value

    def __repr__(self) -> str:
        """Return the codec and its type."""
        kind = self._type
        name = kind.__qualname__ if isinstance(kind, type) else str(kind)
        return f"{type(self).__name__}({name})"


class Json(_Structured[T]):
    """JSON (RFC 8259).

    Args:
        kind: the type of values; without it they are as in the module `json`.

    Raises:
        TypeError: the type cannot be decoded.
    """

    content_type = "application/json"
    _format = "JSON"

    @overload
    def __init__(self: Json[Any]) -> None: ...
    @overload
    def __init__(self, kind: type[T]) -> None: ...
    def __init__(self, kind: Any = Any) -> None:
        self._type = checked(kind)
        self._decoder = msgspec.json.Decoder(kind, dec_hook=_decoded)
        self._encoder = msgspec.json.Encoder(enc_hook=_encoded)

    def encode(self, value: T) -> bytes:
        """Return a value as a body; see `Codec.encode`."""
        return self._encoder.encode(value)


class MessagePack(_Structured[T]):
    """MessagePack.

    Args:
        kind: the type of values; without it they are built-in types.

    Raises:
        TypeError: the type cannot be decoded.
    """

    content_type = "application/msgpack"
    _format = "MessagePack"

    @overload
    def __init__(self: MessagePack[Any]) -> None: ...
    @overload
    def __init__(self, kind: type[T]) -> None: ...
    def __init__(self, kind: Any = Any) -> None:
        self._type = checked(kind)
        self._decoder = msgspec.msgpack.Decoder(kind, dec_hook=_decoded)
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_encoded)

    def encode(self, value: T) -> bytes:
        """Return a value as a body; see `Codec.encode`."""
        return self._encoder.encode(value)


class Text(Codec[str]):
    """Text in UTF-8."""

    content_type = "text/plain; charset=utf-8"

    def encode(self, value: str) -> bytes:
        """Return text as a body."""
        return value.encode()

    def decode(self, body: bytes) -> str:
        """Return the text of a body; see `Codec.decode`."""
        try:
            return body.decode()
        except UnicodeDecodeError as error:
            raise Undecodable("text in UTF-8", str(error)) from error


def checked(kind: Any) -> Any:
    """Return a type.

    Raises:
        TypeError: it cannot be decoded, or a part of it cannot.
    """
    seen: set[int] = set()
    parts: list[Any] = [msgspec.inspect.type_info(kind)]
    while parts:
        part = parts.pop()
        if isinstance(part, msgspec.inspect.CustomType) and not hasattr(part.cls, _VALIDATE):
            # Without this every message would be refused, and the mistake found late.
            raise TypeError(f"a message cannot be decoded as {part.cls!r}")
        if isinstance(part, tuple):
            parts += part
        elif isinstance(part, _PARTS) and id(part) not in seen:
            seen.add(id(part))
            parts += (getattr(part, name) for name in part.__struct_fields__)
    return kind


@functools.lru_cache(maxsize=256)
def json_of(kind: Any) -> Json[Any]:
    """Return the JSON codec of a type, made once."""
    return Json(kind)


def _encoded(value: Any) -> Any:
    """Return the built-in form of a value that msgspec does not know: a model of pydantic."""
    dump = getattr(value, _DUMP, None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} has no form in a message")
    return dump(mode="json")


def _decoded(kind: Any, value: Any) -> Any:
    """Return a value of a type that msgspec does not know: a model of pydantic."""
    return getattr(kind, _VALIDATE)(value)


JSON: Json[Any] = Json()
"""JSON of any type."""
MESSAGE_PACK: MessagePack[Any] = MessagePack()
"""MessagePack of any type."""
TEXT = Text()

"""The test class (AMQP 0-8, class test): clients check that both sides decode the same values.

    operation   integers            strings                  1 add, 2 min, 3 max: the specification
    add         their sum           concatenated             lists them in this order, without
    min         the least           the shortest             numbers
    max         the greatest        the longest

A sum has 64 bits: overflow wraps around, and a negative result is its two's complement. In a field
table whole numbers and decimals count as integers; the fraction of the result is dropped. The
checksum of a content is the sum of its bytes in 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from harebell.base.limits import FRAME_OVERHEAD_BYTES
from harebell.front.amqp_0_9_1.content import Content
from harebell.front.amqp_0_9_1.other_contents import send_body
from harebell.front.common.errors import hard
from harebell.wire.v09 import methods_older as methods
from harebell.wire.v09.method import Method
from harebell.wire.v09.property_list import TEST

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

_CLASS = 120
_INTEGER, _STRING, _TABLE, _CONTENT = 10, 20, 30, 40
_ADD, _MIN, _MAX = 1, 2, 3
_LONGLONG = (1 << 64) - 1
_LONG = (1 << 32) - 1


def reckoned(numbers: Iterable[int | Decimal], operation: int) -> int:
    """Return the result for numbers, as a longlong; 0 if there are none.

    Raises:
        ValueError: the operation is unknown.
    """
    values = list(numbers)
    _check(operation)
    if not values:
        return 0
    if operation == _ADD:
        return int(sum(values)) & _LONGLONG
    return int(min(values) if operation == _MIN else max(values)) & _LONGLONG


def joined(texts: Iterable[bytes], operation: int) -> bytes:
    """Return the result for strings; of equal lengths the first.

    Raises:
        ValueError: the operation is unknown.
    """
    values = list(texts)
    _check(operation)
    if operation == _ADD:
        return b"".join(values)
    pick = min if operation == _MIN else max
    return pick(values, key=len, default=b"")


def checksum(content: bytes) -> int:
    """Return the sum of the bytes in 32 bits."""
    return sum(content) & _LONG


def _check(operation: int) -> None:
    if operation not in (_ADD, _MIN, _MAX):
        raise ValueError(f"{operation} is no operation: 1 is add, 2 is min, 3 is max")


def _wrong(error: ValueError, field: str, method_id: int) -> Exception:
    return hard(502, f"{field}: {error}", _CLASS, method_id)


def _answer(channel: Channel, method: Method, method_id: int) -> None:
    connection = channel.connection
    size = len(connection.spec.encode(method)) + FRAME_OVERHEAD_BYTES
    # A concatenation can be longer than a frame, which a method cannot leave.
    if size > connection.frame_max:
        text = f"the result needs a frame of {size} octets, {connection.frame_max} are agreed on"
        raise hard(506, text, _CLASS, method_id)
    connection.send(channel.number, method)


def integer(channel: Channel, method: methods.TestInteger) -> None:
    """test.integer."""
    numbers = (method.integer_1, method.integer_2, method.integer_3, method.integer_4)
    try:
        result = reckoned(numbers, method.operation)
    except ValueError as error:
        raise _wrong(error, "operation", _INTEGER) from None
    _answer(channel, methods.TestIntegerOk(result), _INTEGER)


def string(channel: Channel, method: methods.TestString) -> None:
    """test.string."""
    try:
        result = joined((method.string_1.encode(), method.string_2), method.operation)
    except ValueError as error:
        raise _wrong(error, "operation", _STRING) from None
    _answer(channel, methods.TestStringOk(result), _STRING)


def table(channel: Channel, method: methods.TestTable) -> None:
    """test.table."""
    values = list(method.table.values())
    try:
        number = reckoned(filter(_is_number, values), method.integer_op)
    except ValueError as error:
        raise _wrong(error, "integer-op", _TABLE) from None
    texts = [each.encode(errors="surrogateescape") if isinstance(each, str) else bytes(each)
             for each in values if isinstance(each, str | bytes)]  # fmt: skip
    try:
        text = joined(texts, method.string_op)
    except ValueError as error:
        raise _wrong(error, "string-op", _TABLE) from None
    _answer(channel, methods.TestTableOk(number, text), _TABLE)


def _is_number(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, int) and not isinstance(value, bool)


def content(channel: Channel, method: methods.TestContent) -> None:
    """test.content: its content follows."""
    gauge = channel.connection.registry.gauge
    channel.content = Content(method, gauge, (_CLASS, _CONTENT), TEST.parse, _whole)
    channel.connection.scanner.pending += 1


def _whole(channel: Channel, content: Content) -> None:
    body = content.body()
    answer = methods.TestContentOk(checksum(body))
    send_body(channel, answer, TEST, content.properties.raw, body)


HANDLERS = {
    methods.TestInteger: integer,
    methods.TestString: string,
    methods.TestTable: table,
    methods.TestContent: content,
}

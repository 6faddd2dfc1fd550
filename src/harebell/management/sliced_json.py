"""Decode a long text of JSON in slices.

A decoder takes about 8 ms for a megabyte, and the event loop waits for it. Here a long object or
list is cut at its commas into parts of about `JSON_PART_BYTES`, which are decoded one by one:

    {"queues": [{...}, {...}, ... ], "rabbit_version": "3.13.7"}
               `-- parts of this list --'

A long text between quotes is decoded in pieces, and stays in pieces where the caller takes it so:
to put 20 MB together, and to make a wide text of it, takes up to 120 ms.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import msgspec

from harebell.admin.long_text import LongText
from harebell.base.slices import Slices
from harebell.management.limits import (
    JSON_DEPTH,
    JSON_MEMBERS,
    JSON_PART_BYTES,
    JSON_SLICE_TOKENS,
    JSON_STRING_BYTES,
)

_TO_NEXT = re.compile(rb'[^"\[\]{},]*+(?:"(?:[^"\\]++|\\.)*+"[^"\[\]{},]*+)*+', re.DOTALL)
"""Everything up to the next bracket or comma that is not in a string."""
_CHARACTERS = re.compile(
    rb'(?:[^"\\]++|\\[^u]|\\u(?![dD][89aAbB])[0-9a-fA-F]{4}'
    rb"|\\u[dD][89aAbB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4})*+"
)
"""Whole characters of a string; two surrogates are one."""
_BYTE = re.compile(r"\(byte (\d+)\)")
_QUOTE, _COMMA = ord('"'), ord(",")
_HIGH_BITS, _IN_CHARACTER = 0xC0, 0x80
_CLOSING = {ord("["): ord("]"), ord("{"): ord("}")}
_ENDS = frozenset(_CLOSING.values())
_TOKENS = frozenset((*_CLOSING, *_ENDS, _COMMA))
_SPACE = b" \t\r\n"


class _Container:
    """An object or a list whose end was not reached yet.

    Args:
        start: the position of its bracket.
        is_object: whether it is an object.
    """

    __slots__ = ("at", "comma", "inner", "is_object", "start", "value")

    def __init__(self, start: int, *, is_object: bool) -> None:
        self.start = start
        self.is_object = is_object
        self.at = start + 1
        """Where the part begins that is not decoded yet."""
        self.comma = start + 1
        """Where the last member begins."""
        self.inner: tuple[int, int, Any] | None = None
        """A long container or text that is the last member: its start, its end and its value."""
        self.value: Any = None
        """What was decoded; None if nothing was."""


def decoded(text: bytes, apart: str = "", value_max: int = sys.maxsize) -> Slices[Any]:
    """Decode a text of JSON.

    Args:
        text: JSON in UTF-8.
        apart: the member of the outermost object that becomes a `LongText` if it is a long text;
            "" for none.
        value_max: most bytes of any other name, text or number.

    Raises:
        msgspec.DecodeError: the text is not JSON, a value has too many bytes, or an object too
            many members; the message has the position.
        UnicodeDecodeError: a string is not UTF-8.
        RecursionError: it is too deep.
    """
    if len(text) <= JSON_PART_BYTES:
        return msgspec.json.decode(text)
    return (yield from _Cutting(text, apart, value_max).run())


class _Cutting:
    """One long text.

    Args:
        text, apart, value_max: as `decoded` gets them.
    """

    def __init__(self, text: bytes, apart: str, value_max: int) -> None:
        self._text = text
        self._apart = apart
        self._value_max = value_max
        self._open: list[_Container] = []

    def run(self) -> Slices[Any]:
        """Decode the text."""
        text, opened = self._text, self._open
        start = len(text) - len(text.lstrip(_SPACE))
        if text[start : start + 1] not in (b"[", b"{"):
            self._check(start, len(text))
            return msgspec.json.decode(text)  # a string or a number
        at, tokens = start, 0
        while at < len(text):
            tokens += 1
            if tokens % JSON_SLICE_TOKENS == 0:
                yield
            here = text[at]
            if here in _CLOSING:
                if len(opened) >= JSON_DEPTH:
                    raise RecursionError(f"JSON is deeper than {JSON_DEPTH} levels (byte {at})")
                opened.append(_Container(at, is_object=here == ord("{")))
            elif here in _ENDS:
                ended = opened.pop()
                if here != _CLOSING[text[ended.start]]:
                    raise self._malformed(at)
                if not opened:
                    return self._whole(ended, at)
                self._end(ended, opened[-1], at)
            elif here == _COMMA:
                self._member(opened[-1], at)
            at = _TO_NEXT.match(text, at + 1, at + 1 + JSON_STRING_BYTES).end()  # type: ignore[union-attr]
            if at < len(text) and text[at] not in _TOKENS:
                at = yield from self._next(at)
        raise msgspec.DecodeError("Input data was truncated")

    def _next(self, at: int) -> Slices[int]:
        """Return the position of the next bracket or comma behind a long string."""
        text = self._text
        while at < len(text) and text[at] not in _TOKENS:
            if text[at] == _QUOTE:
                at = yield from self._string(at)
            # The pattern matches everything, if need be nothing.
            at = _TO_NEXT.match(text, at, at + JSON_STRING_BYTES).end()  # type: ignore[union-attr]
            yield
        return at

    def _string(self, start: int) -> Slices[int]:
        """Decode a text between quotes in pieces; returns the position behind it."""
        text, around, at = self._text, self._open[-1], start + 1
        is_apart = self._is_apart(around, start)
        pieces: list[str] = []
        while text[at : at + 1] != b'"':
            if not is_apart:
                self._check(start, at)
            # The pattern matches everything, if need be nothing.
            end = _CHARACTERS.match(text, at, at + JSON_PART_BYTES).end()  # type: ignore[union-attr]
            while at < end < len(text) and text[end] & _HIGH_BITS == _IN_CHARACTER:
                end -= 1
            if end == at:
                raise self._malformed(at)
            pieces.append(self._decode(b'"', at, end, b'"'))
            at = end
            yield
        is_value = not around.is_object or self._before(around, start).endswith(b":")
        if is_value and at - start > JSON_STRING_BYTES:
            if around.inner is not None:
                raise self._malformed(start)
            value = LongText(pieces) if is_apart else "".join(pieces)
            around.inner = (start, at + 1, value)
        return at + 1

    def _before(self, around: _Container, start: int) -> bytes:
        """Return what a member has before its value."""
        self._check(around.comma, start)
        return self._text[around.comma : start].rstrip(_SPACE)

    def _is_apart(self, around: _Container, start: int) -> bool:
        """True if a text is that of the member that stays in pieces."""
        if not self._apart or len(self._open) > 1 or around.inner is not None:
            return False
        before = self._before(around, start)
        return before.endswith(b":") and self._apart in self._decode(
            b"{", around.comma, start, b"0}"
        )

    def _whole(self, ended: _Container, at: int) -> Any:
        """Return the value of the outermost container."""
        text = self._text
        if text[at + 1 :].strip(_SPACE):
            raise msgspec.DecodeError(f"JSON is malformed: trailing characters (byte {at + 1})")
        self._part(ended, at, last=True)
        return ended.value

    def _end(self, ended: _Container, around: _Container, at: int) -> None:
        """End a container inside another one; a short one is decoded with what is around it."""
        if ended.value is None and ended.inner is None and at - ended.at <= JSON_PART_BYTES:
            return
        self._part(ended, at, last=True)
        if around.inner is not None:
            raise self._malformed(ended.start)
        around.inner = (ended.start, at + 1, ended.value)

    def _member(self, around: _Container, at: int) -> None:
        """End a member of a container at a comma."""
        if around.inner is not None or at - around.at > JSON_PART_BYTES:
            self._part(around, at, last=False)
            around.at = at + 1
        around.comma = at + 1

    def _part(self, container: _Container, end: int, *, last: bool) -> None:
        """Decode what is not decoded yet of a container, up to a comma or its end."""
        text, inner = self._text, container.inner
        value = container.value
        if inner is None:
            if text[container.at : end].strip(_SPACE):
                self._take(container, container.at, end)
            elif value is not None or not last:
                raise self._malformed(end)
            elif value is None:
                container.value = {} if container.is_object else []
            return
        start, after, decoded = inner
        container.inner = None
        if text[after:end].strip(_SPACE):
            raise self._malformed(after)
        if container.at < container.comma:
            self._take(container, container.at, container.comma - 1)
        if container.value is None:
            container.value = {} if container.is_object else []
        if container.is_object:
            (name,) = self._decode(b"{", container.comma, start, b"0}")
            container.value[name] = decoded
        elif text[container.comma : start].strip(_SPACE):
            raise self._malformed(container.comma)
        else:
            container.value.append(decoded)

    def _take(self, container: _Container, at: int, end: int) -> None:
        """Decode whole members."""
        if container.is_object:
            decoded = self._decode(b"{", at, end, b"}")
        else:
            decoded = self._decode(b"[", at, end, b"]")
        if container.value is None:
            container.value = decoded
        elif container.is_object:
            container.value.update(decoded)
            if len(container.value) > JSON_MEMBERS:
                # A table of so many names takes 30 ms to grow, and as long to be freed.
                raise msgspec.DecodeError(
                    f"an object has more than {JSON_MEMBERS} members (byte {at})"
                )
        else:
            container.value.extend(decoded)

    def _check(self, at: int, end: int) -> None:
        """Refuse a value, or a name, that is too long to be decoded at once."""
        if end - at > self._value_max:
            raise msgspec.DecodeError(
                f"a name or value has more than {self._value_max} bytes (byte {at})"
            )

    def _decode(self, before: bytes, at: int, end: int, after: bytes) -> Any:
        self._check(at, end)
        try:
            return msgspec.json.decode(before + self._text[at:end] + after)
        except msgspec.DecodeError as error:
            shift = at - len(before)
            text = _BYTE.sub(lambda match: f"(byte {int(match[1]) + shift})", str(error))
            raise msgspec.DecodeError(text) from None

    def _malformed(self, at: int) -> msgspec.DecodeError:
        return msgspec.DecodeError(f"JSON is malformed: invalid character (byte {at})")

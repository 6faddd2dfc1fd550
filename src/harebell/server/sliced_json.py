"""Decode a long text of JSON in slices.

A decoder takes about 8 ms for a megabyte, and the event loop waits for it. Here a long object or
list is cut at its commas into parts of about `JSON_PART_BYTES`, which are decoded one by one:

    {"queues": [{...}, {...}, ... ], "rabbit_version": "3.13.7"}
               `-- parts of this list --'
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from harebell.base.limits import JSON_DEPTH, JSON_PART_BYTES, JSON_SLICE_TOKENS, JSON_STRING_BYTES
from harebell.base.slices import Slices

_TO_NEXT = re.compile(rb'[^"\[\]{},]*+(?:"(?:[^"\\]++|\\.)*+"[^"\[\]{},]*+)*+', re.DOTALL)
"""Everything up to the next bracket or comma that is not in a string."""
_BYTE = re.compile(r"\(byte (\d+)\)")
_QUOTE, _COMMA = ord('"'), ord(",")
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
        """A long container that is the last member: its start, its end and its value."""
        self.value: Any = None
        """What was decoded; None if nothing was."""


def decoded(text: bytes) -> Slices[Any]:
    """Decode a text of JSON.

    Raises:
        msgspec.DecodeError: the text is not JSON; the message has the position.
        UnicodeDecodeError: a string is not UTF-8.
        RecursionError: it is too deep.
    """
    if len(text) <= JSON_PART_BYTES:
        return msgspec.json.decode(text)
    return (yield from _Cutting(text).run())


class _Cutting:
    """One long text.

    Args:
        text: JSON in UTF-8.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._open: list[_Container] = []

    def run(self) -> Slices[Any]:
        """Decode the text."""
        text, opened = self._text, self._open
        start = len(text) - len(text.lstrip(_SPACE))
        if text[start : start + 1] not in (b"[", b"{"):
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
                at = (yield from self._end_of_string(at)) + 1
            # The pattern matches everything, if need be nothing.
            at = _TO_NEXT.match(text, at, at + JSON_STRING_BYTES).end()  # type: ignore[union-attr]
            yield
        return at

    def _end_of_string(self, start: int) -> Slices[int]:
        text, at = self._text, start
        while True:
            at = text.find(b'"', at + 1)
            if at < 0:
                raise msgspec.DecodeError("Input data was truncated")
            before = text[max(start + 1, at - JSON_STRING_BYTES) : at]
            if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
                return at
            yield

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
        start, after, found = inner
        container.inner = None
        if text[after:end].strip(_SPACE):
            raise self._malformed(after)
        if container.at < container.comma:
            self._take(container, container.at, container.comma - 1)
        if container.value is None:
            container.value = {} if container.is_object else []
        if container.is_object:
            (name,) = self._decode(b"{", container.comma, start, b"0}")
            container.value[name] = found
        elif text[container.comma : start].strip(_SPACE):
            raise self._malformed(container.comma)
        else:
            container.value.append(found)

    def _take(self, container: _Container, at: int, end: int) -> None:
        """Decode whole members."""
        if container.is_object:
            found = self._decode(b"{", at, end, b"}")
        else:
            found = self._decode(b"[", at, end, b"]")
        if container.value is None:
            container.value = found
        elif container.is_object:
            container.value.update(found)
        else:
            container.value.extend(found)

    def _decode(self, before: bytes, at: int, end: int, after: bytes) -> Any:
        try:
            return msgspec.json.decode(before + self._text[at:end] + after)
        except msgspec.DecodeError as error:
            shift = at - len(before)
            text = _BYTE.sub(lambda found: f"(byte {int(found[1]) + shift})", str(error))
            raise msgspec.DecodeError(text) from None

    def _malformed(self, at: int) -> msgspec.DecodeError:
        return msgspec.DecodeError(f"JSON is malformed: invalid character (byte {at})")

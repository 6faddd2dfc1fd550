"""The test class of 0-8: integers, strings, tables and contents, each with its answer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_older import (
    TestContent,
    TestContentOk,
    TestInteger,
    TestIntegerOk,
    TestString,
    TestStringOk,
    TestTable,
)
from harebell.wire.v09.property_list import TEST, NoProperties
from tests.conformance.v08.contents import Peer08

ADD, MIN, MAX = 1, 2, 3


@pytest.mark.parametrize(
    ("operation", "result"), [(ADD, 1 + 2 + 3 + 2**40), (MIN, 1), (MAX, 2**40)]
)
def test_integers_are_reckoned_with(peer08: Peer08, operation: int, result: int):
    assert peer08.ask(TestInteger(1, 2, 3, 2**40, operation)).result == result


def test_the_largest_integers_are_read_without_a_sign(peer08: Peer08):
    largest = (2**8 - 1, 2**16 - 1, 2**32 - 1, 2**64 - 1)
    assert peer08.ask(TestInteger(*largest, MAX)).result == 2**64 - 1
    assert peer08.ask(TestInteger(*largest, MIN)).result == 255
    assert peer08.ask(TestInteger(*largest, ADD)).result == sum(largest) % 2**64


@pytest.mark.parametrize(
    ("operation", "result"),
    [(ADD, b"short" + b"\0longer\xff"), (MIN, b"short"), (MAX, b"\0longer\xff")],
)
def test_strings_are_joined_and_measured(peer08: Peer08, operation: int, result: bytes):
    assert peer08.ask(TestString("short", b"\0longer\xff", operation)).result == result


def test_empty_strings_are_strings(peer08: Peer08):
    assert peer08.ask(TestString("", b"", ADD)).result == b""
    assert peer08.ask(TestString("", b"x", MIN)).result == b""


@pytest.mark.parametrize(
    ("table", "integers", "strings", "number", "text"),
    [
        ({"a": 5, "b": 7, "c": "xx", "d": "yyy"}, ADD, ADD, 12, b"xxyyy"),
        ({"a": 5, "b": 7, "c": "xx", "d": "yyy"}, MIN, MAX, 5, b"yyy"),
        ({"a": 5, "b": 7, "c": "xx", "d": "yyy"}, MAX, MIN, 7, b"xx"),
        ({"a": -3, "b": 2}, MIN, ADD, 2**64 - 3, b""),
        ({"a": Decimal("2.5"), "b": 1}, ADD, MAX, 3, b""),
        ({}, MAX, MIN, 0, b""),
    ],
)
def test_the_values_of_a_table_are_reckoned_with(
    peer08: Peer08, table: dict[str, Any], integers: int, strings: int, number: int, text: bytes
):
    found = peer08.ask(TestTable(table, integers, strings))
    assert (found.integer_result, found.string_result) == (number, text)


@pytest.mark.parametrize("size", [0, 1, 1_000, 300_000])
def test_a_content_comes_back_with_its_checksum(peer08: Peer08, size: int):
    body = (bytes(range(1, 256)) * (size // 255 + 1))[:size]
    peer08.send_content(TestContent(), TEST, NoProperties(), body)
    found = peer08.expect_whole(TestContentOk)
    assert found.body == body
    assert found.method.content_checksum == sum(body) % 2**32


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (TestInteger(1, 2, 3, 4, 0), "operation: 0 is no operation"),
        (TestInteger(1, 2, 3, 4, 4), "operation: 4 is no operation"),
        (TestString("a", b"b", 9), "operation: 9 is no operation"),
        (TestTable({}, 9, ADD), "integer-op: 9 is no operation"),
        (TestTable({}, ADD, 9), "string-op: 9 is no operation"),
    ],
)
def test_an_operation_that_is_none_is_a_syntax_error(peer08: Peer08, method: Any, text: str):
    peer08.send(method)
    peer08.cut_off(502, text)


@pytest.mark.parametrize("method", [TestIntegerOk(1), TestStringOk(b"x")])
def test_an_answer_to_nothing_is_refused(peer08: Peer08, method: Any):
    peer08.send(method)
    peer08.cut_off(503, "")


def test_a_result_that_fits_no_frame_is_refused(connect08: Any):
    peer = connect08().open(frame_max=4_096)
    peer.send(TestString("x" * 255, bytes(3_830), ADD))
    peer.cut_off(506, "the result needs a frame of")


def test_properties_of_a_test_content_are_refused(peer08: Peer08):
    peer08.send_content(TestContent(), TEST, b"\x80\0\0", b"x")
    close = peer08.expect(m.ConnectionClose)
    assert "unknown property flags" in close.reply_text
    peer08.opened = False

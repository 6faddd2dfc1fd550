"""The number of a message is found in its header table, and in nothing that only looks like it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from harebell.wire.v09.content import BasicProperties, encode_properties
from tests.unit.kernels.twins import twin, used

KERNELS = [pytest.param(used("publishing"), id="used"), pytest.param(twin("publishing"), id="twin")]
NAME = b"\x0fx-publishing-id"


def listed(headers: dict[str, Any] | None, **more: Any) -> bytes:
    return encode_properties(BasicProperties(headers=headers, **more))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("raw", "number"),
    [
        (b"\0\0", -1),
        (listed(None, content_type="a/b"), -1),
        (listed({}), -1),
        (listed({"x-publishing-id": 0}), 0),
        (listed({"x-publishing-id": 5}, content_type="a/b", content_encoding="c"), 5),
        (listed({"a": 1, "b": "text", "c": [1], "x-publishing-id": 2**40, "z": None}), 2**40),
        (listed({"x-publishing-id": -1}), -1),
        (listed({"x-publishing-id": "7"}), -1),
        (listed({"x-publishing-id": None}), -1),
        (listed({"x-publishing-id": True}), -1),
        (listed({"x-publishing-idl": 7}), -1),
        (listed({"inner": {"x-publishing-id": 7}}), -1),
        (listed({"text": "\x0fx-publishing-idl12345678"}), -1),
        (b"\x20\0\0\0\0\x12" + NAME + b"B\xff", 255),
        (b"\x20\0\0\0\0\x12" + NAME + b"b\xff", -1),
        (b"\x20\0\0\0\0\x13" + NAME + b"u\xff\xff", 65535),
        (b"\x20\0\0\0\0\x13" + NAME + b"s\x7f\xff", 32767),
        (b"\x20\0\0\0\0\x15" + NAME + b"i\xff\xff\xff\xff", 2**32 - 1),
        (b"\x20\0\0\0\0\x15" + NAME + b"I\xff\xff\xff\xff", -1),
        (b"\x20\0\0\0\0\x19" + NAME + b"L\x7f" + b"\xff" * 7, 2**63 - 1),
    ],
)
def test_the_number_is_found(kernel: ModuleType, raw: bytes, number: int) -> None:
    assert kernel.publishing_id(raw) == number


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_table_is_left_without_its_numbers(kernel: ModuleType) -> None:
    inner = {"a": 1, "t": {"x-publishing-id": 7}, "u": None, "x-publishing-idl": "x-publishing-id"}
    plain = listed(inner)[6:]
    assert kernel.unnumbered(b"") == b""
    assert kernel.unnumbered(plain) == plain
    fixed = [b"V", b"t\x01", b"B\xff", b"u\0\1", b"I\0\0\0\1", b"l" + bytes(8), b"D" + bytes(5)]
    for value in (*fixed, b"S\0\0\0\2ab", b"F\0\0\0\0"):
        assert kernel.unnumbered(NAME + value) == b""
        assert kernel.unnumbered(NAME + value + plain + NAME + value) == plain

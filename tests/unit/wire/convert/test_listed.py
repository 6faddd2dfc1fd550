"""Property lists of files and packets, and their structs in 0-10."""

from __future__ import annotations

import contextlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.wire.convert.listed import to_list, to_struct
from harebell.wire.v010 import structs
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v09 import property_list as lists
from harebell.wire.v09.property_list import FILE, STREAM, PropertyList

FULL = lists.FileProperties(
    "a/b", "gzip", {"a": 1, "b": ["x", {"c": None}], "d": Decimal("1.5")}, 7, "back", "id", "f",
    1_186_000_000, "cluster",
)  # fmt: skip
CASES = [
    (FILE, FULL),
    (FILE, lists.FileProperties()),
    (FILE, lists.FileProperties(filename="only", headers={})),
    (STREAM, lists.StreamProperties("a/b", "gzip", {"a": True}, 0, 5)),
    (STREAM, lists.StreamProperties(timestamp=0)),
]


@pytest.mark.parametrize(("listed", "properties"), CASES)
def test_a_list_comes_back_from_its_struct(listed: PropertyList, properties: object) -> None:
    raw = listed.encode(properties)  # type: ignore[arg-type]
    assert to_list(listed, to_struct(listed, raw)) == raw


def test_the_struct_is_what_the_codec_of_0_10_writes() -> None:
    struct = structs.FileProperties("a/b", None, {"a": 1}, 7, None, "id", "f", None, "cluster")
    raw = AMQP_0_10.encode_struct(struct)
    found = FILE.decode(to_list(FILE, raw))
    assert (found.content_type, found.headers, found.priority) == ("a/b", {"a": 1}, 7)
    assert (found.message_id, found.filename, found.cluster_id) == ("id", "f", "cluster")
    assert to_struct(FILE, to_list(FILE, raw)) == raw


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "holds no file-properties"),
        (AMQP_0_10.encode_struct(structs.StreamProperties("a")), "holds no file-properties"),
        (AMQP_0_10.encode_struct(structs.FileProperties("a")) * 2, "holds more than"),
        (b"\0\0\0\4\x09\1\0\2", "no such field"),
        (b"\0\0\0\5\x09\1\1\0\5", "content-type runs over the end"),
        (b"\0\0\0\5\x09\1\0\0\5", "octets after the last field"),
    ],
)
def test_an_unknown_struct_is_named(raw: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        to_list(FILE, raw)


@given(st.binary(max_size=80))
def test_any_octets_are_a_list_or_a_clear_error(octets: bytes) -> None:
    struct = (len(octets) + 2).to_bytes(4) + b"\x09\x01" + octets
    with contextlib.suppress(ValueError):
        to_list(FILE, struct)


@given(st.binary(max_size=60))
def test_any_octets_are_headers_or_a_clear_error(octets: bytes) -> None:
    inner = b"\x09\x01\x04\x00" + len(octets).to_bytes(4) + octets
    with contextlib.suppress(ValueError):
        to_list(FILE, len(inner).to_bytes(4) + inner)

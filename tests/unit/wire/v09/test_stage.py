"""The field of stage.commit that has a format of its own."""

from __future__ import annotations

import pytest

from harebell.base.errors import ProtocolError
from harebell.wire.v09.stage import StagePart, decode_parts, encode_parts


def test_parts_survive_the_way_there_and_back() -> None:
    parts = [StagePart(0, 1, 2), StagePart(2**32 - 1, 2**64 - 1, 2**63)]
    assert decode_parts(encode_parts(parts)) == parts
    assert encode_parts(parts)[:20] == bytes(3) + b"\0" + bytes(7) + b"\1" + bytes(7) + b"\2"
    assert decode_parts(b"") == []


def test_parts_that_are_cut_short_are_an_error() -> None:
    with pytest.raises(ProtocolError, match="has 21 octets, not 20 for each part"):
        decode_parts(bytes(21))

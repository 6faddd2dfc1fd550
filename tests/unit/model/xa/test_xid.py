"""An xid is read as it was written, and what is none is refused with its reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.model.xa.xid import Xid, XidError, checked_xid, xid_of_bytes, xid_of_text

XIDS = st.builds(Xid, st.integers(0, 2**32 - 1), st.binary(max_size=64), st.binary(max_size=64))


@given(XIDS)
def test_octets_and_text_are_read_as_they_were_written(xid: Xid) -> None:
    assert xid_of_bytes(xid.encode()) == xid
    assert xid_of_text(str(xid)) == xid


@pytest.mark.rule("0-10t#008")
def test_the_octets_are_format_two_lengths_and_the_data() -> None:
    assert Xid(7, b"tx", b"br").encode() == bytes.fromhex("00000007 02 02 7478 6272")
    assert xid_of_bytes(bytes.fromhex("00000000 00 00")) == Xid(0, b"", b"")


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        ("", "at least 6 octets"),
        ("0000000002", "at least 6 octets"),
        ("00000000 02 02 74786", "say 4 octets of data"),
        ("00000000 02 02 747862", "there are 3"),
        ("00000000 01 01 747862", "there are 3"),
        ("00000000 41 00" + "61" * 65, "has 65 octets, and 64 is the most"),
        ("00000000 00 41" + "61" * 65, "branch id of an xid has 65"),
    ],
)
def test_other_octets_are_refused(octets: str, why: str) -> None:
    digits = octets.replace(" ", "")
    with pytest.raises(XidError, match=why):
        xid_of_bytes(bytes.fromhex(digits[: len(digits) // 2 * 2]))


@pytest.mark.parametrize(
    "text", ["", "1", "1:2", "a:00:00", "1:0:00", "-1:00:00", "4294967296:00:00", "1:00:00:00"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(XidError, match="is no xid: that is a number"):
        xid_of_text(text)


def test_parts_that_are_too_long_are_refused() -> None:
    assert checked_xid(1, b"a" * 64, b"b" * 64) == Xid(1, b"a" * 64, b"b" * 64)
    with pytest.raises(XidError, match="transaction id of an xid has 65 octets"):
        checked_xid(1, b"a" * 65, b"")

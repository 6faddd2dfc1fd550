"""The reply codes of transitional 0-10, as its document lists them."""

from __future__ import annotations

from harebell.wire.v09.reply_codes import HARD_0_10T, NAMES_0_10T, SOFT_0_10T


def test_the_codes_are_those_of_the_document():
    assert sorted(SOFT_0_10T) == [310, 311, 312, 313, 403, 404, 405, 406]
    assert sorted(HARD_0_10T) == [320, 402, 501, 502, 503, 504, 506, 530, 540, 541, 542]
    assert NAMES_0_10T[402] == "INVALID_PATH"

"""Hashes never change: where a key goes depends on them."""

from __future__ import annotations

from harebell.base.hashing import hashed, mixed


def test_hashes_are_those_of_every_other_day() -> None:
    # Messages of one key stay with one queue over versions of the broker, so these never change.
    assert hashed("orders.eu") == 0x812E8FDFD0914AD1
    assert mixed(0) == 0
    assert mixed(1) == 0x5692161D100B05E5

"""Compression: what there is, and what is said where the library is missing."""

from __future__ import annotations

import sys

import pytest

from harebell.wire.arrow.encode import compressor


def test_nothing_compresses_unless_it_is_asked_for() -> None:
    assert compressor("") is None


def test_lz4_makes_a_frame() -> None:
    compress = compressor("lz4")
    assert compress is not None
    assert compress(b"x" * 1000)[:4] == b"\x04\x22\x4d\x18"


def test_an_unknown_compression_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="there is no compression 'zip': ask for lz4, or for none"):
        compressor("zip")


def test_a_missing_library_is_named_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    with pytest.raises(
        ValueError, match="needs the library lz4 where the broker runs: pip install"
    ):
        compressor("lz4")

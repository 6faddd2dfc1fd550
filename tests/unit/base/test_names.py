"""Near misses."""

from __future__ import annotations

import pytest

from harebell.base.names import did_you_mean, nearest

KNOWN = ("host", "port", "heartbeat")


@pytest.mark.parametrize(
    ("name", "known"), [("prot", "port"), ("hosts", "host"), ("heartbeet", "heartbeat")]
)
def test_a_typing_error_finds_the_name_that_was_meant(name: str, known: str) -> None:
    assert nearest(name, KNOWN) == known
    assert did_you_mean(name, KNOWN) == f"did you mean {known}?"


def test_a_name_like_none_gets_all_of_them() -> None:
    assert nearest("zzz", KNOWN) is None
    assert did_you_mean("zzz", iter(KNOWN), quote="'") == "known are 'host', 'port', 'heartbeat'"

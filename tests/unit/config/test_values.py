"""Readers of values that are more than a number or a word."""

from __future__ import annotations

import pytest

from harebell.config.values import ciphers, port_or_none


@pytest.mark.parametrize(
    ("written", "value"), [("none", None), ("OFF", None), ("0", 0), (5672, 5672)]
)
def test_a_port_may_be_none(written: str | int, value: int | None) -> None:
    assert port_or_none(written) == value


def test_ciphers_are_what_openssl_knows() -> None:
    assert ciphers("ECDHE+AESGCM") == "ECDHE+AESGCM"
    for wrong in ("NONSENSE", "", 5):
        with pytest.raises(ValueError, match="a list of ciphers as OpenSSL writes it"):
            ciphers(wrong)

"""What every SASL mechanism keeps to."""

from __future__ import annotations

import pytest

from harebell.auth.sasl import MECHANISMS, Credentials, Mechanism


def test_mechanisms_are_offered_under_their_own_names_in_order_of_preference() -> None:
    assert list(MECHANISMS) == ["PLAIN", "AMQPLAIN"]
    assert all(name == kind.NAME for name, kind in MECHANISMS.items())


def test_a_password_does_not_show_when_credentials_are_logged() -> None:
    assert repr(Credentials("user", "s3cret")) == "Credentials('user', ***)"


def test_a_mechanism_has_to_read_responses() -> None:
    with pytest.raises(NotImplementedError):
        Mechanism(lambda data: {}).credentials(b"")

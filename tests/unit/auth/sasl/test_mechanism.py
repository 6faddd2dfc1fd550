"""What every SASL mechanism keeps to."""

from __future__ import annotations

import pytest

from harebell.auth.sasl import Credentials, Mechanism


def test_a_password_does_not_show_when_credentials_are_logged() -> None:
    assert repr(Credentials("user", "s3cret")) == "Credentials('user', ***)"


def test_a_mechanism_has_to_read_responses() -> None:
    with pytest.raises(NotImplementedError):
        Mechanism(lambda data: {}).credentials(b"")

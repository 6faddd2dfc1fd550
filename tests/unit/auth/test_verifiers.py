"""SCRAM verifiers: the published example, and that they survive being stored."""

from __future__ import annotations

import base64

import pytest

from harebell.auth import verifiers
from harebell.auth.verifiers import SHA1, SHA256, Verifier


def test_a_verifier_is_that_of_the_published_exchange() -> None:
    # RFC 7677 section 3: user "user", password "pencil"
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    found = verifiers.derived(SHA256, "pencil", salt, 4096)
    assert base64.b64encode(found.stored) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(found.server) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


def test_verifiers_survive_being_stored() -> None:
    made = verifiers.all_derived("p\u00e4ss", bytes)
    assert set(made) == {SHA1, SHA256}
    assert verifiers.read(verifiers.written(made)) == (made, b"")
    assert verifiers.read(verifiers.written(made, bytes(32))) == (made, bytes(32))
    assert verifiers.read("") == ({}, b"")


def test_a_verifier_does_not_show_in_a_repr() -> None:
    assert repr(Verifier(4096, b"s", b"k", b"v")) == "Verifier(4096, ***)"


DAMAGED = ("CRAM-MD5", "CRAM-MD5$?", "CRAM-MD5$AAAA")


@pytest.mark.parametrize(
    "text", ["x", "PLAIN$1:a$b:c", "SCRAM-SHA-1$4096:?$b:c", f"{SHA1}$x:$:", *DAMAGED]
)
def test_damaged_verifiers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"verifier|invalid literal"):
        verifiers.read(text)

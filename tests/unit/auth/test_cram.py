"""What CRAM-MD5 keeps of a password proves the answers that the password gives."""

from __future__ import annotations

import hmac

from hypothesis import given
from hypothesis import strategies as st

from harebell.auth.cram import CONTEXT_BYTES, context_of, proves


def test_the_published_answer_is_right() -> None:
    # RFC 2195 section 2
    challenge = b"<1896.697170952@postoffice.reston.mci.net>"
    context = context_of("tanstaaftanstaaf")
    assert len(context) == CONTEXT_BYTES
    assert proves(context, challenge, b"b913a602c7eda7a495b4e6e7334d3890")
    assert proves(context, challenge, b"B913A602C7EDA7A495B4E6E7334D3890")
    assert not proves(context, challenge, b"b913a602c7eda7a495b4e6e7334d3891")
    assert not proves(context, challenge + b"x", b"b913a602c7eda7a495b4e6e7334d3890")
    assert not proves(context, challenge, b"")


@given(password=st.text(max_size=100), challenge=st.binary(max_size=200))
def test_every_answer_is_that_of_the_library(password: str, challenge: bytes) -> None:
    answer = hmac.new(password.encode(), challenge, "md5").hexdigest().encode()
    assert proves(context_of(password), challenge, answer)


def test_a_context_does_not_show_the_password() -> None:
    assert b"tanstaaf" not in context_of("tanstaaftanstaaf")

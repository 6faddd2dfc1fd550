"""Reply codes: names and severities as published, and texts that always fit a short string."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.wire.v09.domains import DOMAINS
from harebell.wire.v09.reply_codes import HARD, NAMES, REPLY_SUCCESS, SOFT, reply_text


@pytest.mark.rule("0-9-1#001")
def test_codes_have_the_published_names_and_severities():
    assert SOFT == {
        311: "CONTENT_TOO_LARGE",
        312: "NO_ROUTE",
        313: "NO_CONSUMERS",
        403: "ACCESS_REFUSED",
        404: "NOT_FOUND",
        405: "RESOURCE_LOCKED",
        406: "PRECONDITION_FAILED",
    }
    assert HARD == {
        320: "CONNECTION_FORCED",
        402: "INVALID_PATH",
        501: "FRAME_ERROR",
        502: "SYNTAX_ERROR",
        503: "COMMAND_INVALID",
        504: "CHANNEL_ERROR",
        505: "UNEXPECTED_FRAME",
        506: "RESOURCE_ERROR",
        530: "NOT_ALLOWED",
        540: "NOT_IMPLEMENTED",
        541: "INTERNAL_ERROR",
    }
    assert REPLY_SUCCESS == 200


def test_a_reply_text_begins_with_the_name_of_its_code():
    assert reply_text(404, "no queue 'q' in vhost '/'") == "NOT_FOUND - no queue 'q' in vhost '/'"


def test_a_long_reply_text_is_cut_to_255_octets():
    text = reply_text(541, "x" * 1_000)
    assert len(text) == 255
    assert text.startswith("INTERNAL_ERROR - xxx")
    assert text.endswith("x...")


def test_a_reply_text_that_just_fits_is_whole():
    whole = "x" * (255 - len("NOT_FOUND - "))
    assert reply_text(404, whole) == f"NOT_FOUND - {whole}"
    assert reply_text(404, whole + "x") == f"NOT_FOUND - {whole[:-3]}..."


def test_a_cut_never_splits_a_character():
    for filler in range(4):
        text = reply_text(404, "x" * filler + "€" * 200)
        octets = text.encode()
        assert 252 < len(octets) <= 255
        assert octets.decode() == text


@given(st.sampled_from(sorted(NAMES)), st.text(st.characters(), max_size=400))
def test_every_reply_text_fits_a_short_string(code: int, text: str):
    octets = DOMAINS["shortstr"].write(reply_text(code, text))
    assert DOMAINS["shortstr"].read(octets, 0)[0].startswith(NAMES[code])


def test_text_that_utf8_cannot_express_does_not_stop_an_error_from_being_told():
    assert reply_text(404, "no queue '\ud800'") == "NOT_FOUND - no queue '?'"


def test_an_unknown_code_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"999 is no reply code; they are 311, .*541"):
        reply_text(999, "?")

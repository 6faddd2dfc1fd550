"""The first eight octets: every header that a peer may send, whole and cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.wire import TRANSITIONAL_0_10, as_tuple, shown, sniff

OURS = b"AMQP\x00\x00\x09\x01"
ACCEPTED = {
    OURS: "0-9-1",
    b"AMQP\x01\x01\x00\x09": "0-9",
    b"AMQP\x01\x01\x08\x00": "0-8",
    b"AMQP\x01\x01\x09\x01": "0-8",  # the Python library amqplib
    b"AMQP\x01\x01\x00\x0a": "0-10",
    b"AMQP\x01\x01\x63\x00": "0-10t",
    b"AMQP\x00\x01\x00\x00": "1-0",
    b"AMQP\x03\x01\x00\x00": "1-0",
}
REFUSED = [
    b"AMQP\x00\x00\x09\x00",
    b"AMQP\x00\x00\x08\x00",
    b"AMQP\x01\x01\x08\x01",
    b"AMQP\x01\x01\x00\x08",
    b"AMQP\x01\x01\x09\x00",
    b"AMQP\x00\x00\x00\x09",
    b"AMQP\x01\x01\x00\x5b",
    b"amqp\x00\x00\x09\x01",
    b"GET / HT",
    b"HTTP/1.1",
    b"\x16\x03\x01\x02\x00\x01\x00\x01",  # TLS hello
]
REFUSED_1_0 = [
    b"AMQP\x02\x01\x00\x00",  # TLS inside of the connection
    b"AMQP\x00\x01\x00\x01",
    b"AMQP\x00\x01\x01\x00",
    b"AMQP\x03\x02\x00\x00",
    b"AMQP\x00\xff\xff\xff",
]


@pytest.mark.parametrize(("header", "version"), ACCEPTED.items())
def test_a_header_names_its_version(header: bytes, version: str):
    assert sniff(header).version == version
    assert sniff(header).answer == b""


def test_on_its_own_listener_the_header_of_0_10_means_the_transitional_one():
    assert sniff(b"AMQP\x01\x01\x00\x0a", TRANSITIONAL_0_10).version == "0-10t"
    assert sniff(OURS, TRANSITIONAL_0_10).version == "0-9-1"


@pytest.mark.parametrize("header", ACCEPTED)
def test_octets_behind_the_header_do_not_matter(header: bytes):
    assert sniff(header + b"\x01\x00\x00").version == ACCEPTED[header]


@pytest.mark.parametrize("header", REFUSED)
def test_any_other_header_is_answered_with_the_one_we_speak(header: bytes):
    sniffed = sniff(header)
    assert sniffed.answer == OURS
    assert not sniffed.version
    assert not sniffed.incomplete


@pytest.mark.rule("1.0#014")
@pytest.mark.parametrize("header", REFUSED_1_0)
def test_another_header_of_1_0_is_answered_with_that_of_its_sasl_layer(header: bytes):
    for length in (6, 7, 8):
        sniffed = sniff(header[:length])
        assert sniffed.incomplete or sniffed.answer == b"AMQP\x03\x01\x00\x00"
    assert not sniffed.incomplete


def test_the_header_of_1_0_says_whether_sasl_comes_first():
    assert sniff(b"AMQP\x03\x01\x00\x00").sasl
    assert not sniff(b"AMQP\x00\x01\x00\x00").sasl
    assert not sniff(OURS).sasl


@pytest.mark.parametrize("header", ACCEPTED)
def test_a_cut_header_waits_for_the_rest(header: bytes):
    for length in range(8):
        sniffed = sniff(header[:length])
        assert sniffed.incomplete
        assert not sniffed.answer


def test_a_wrong_beginning_is_refused_before_the_eighth_octet():
    assert sniff(b"G").answer == OURS
    assert sniff(b"AMQB").answer == OURS


@given(st.binary(max_size=16))
def test_every_input_is_exactly_one_of_known_incomplete_and_refused(data: bytes):
    sniffed = sniff(data)
    assert [bool(sniffed.version), sniffed.incomplete, bool(sniffed.answer)].count(True) == 1


@given(st.binary(min_size=8, max_size=16))
def test_eight_octets_always_decide(data: bytes):
    assert not sniff(data).incomplete


def test_tools_see_a_version_by_its_name():
    assert shown("0-9-1") == "AMQP 0-9-1"
    assert shown("0-10t") == "AMQP 0-10 (transitional)"
    assert shown("1-0") == "AMQP 1.0"
    assert shown("") == ""


def test_events_have_a_version_as_a_tuple():
    assert [as_tuple(version) for version in ("0-8", "0-9-1", "0-10t", "1-0")] == [
        "{0,8}",
        "{0,9,1}",
        "{0,10}",
        "{1,0}",
    ]

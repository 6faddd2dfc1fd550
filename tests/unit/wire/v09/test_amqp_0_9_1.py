"""The table of 0-9-1 with RabbitMQ's extensions, against the published numbers and pika's codec.

pika's `spec` module was generated from RabbitMQ's machine-readable definition, so it is a second
opinion on every number, every field and every octet.
"""

from __future__ import annotations

import struct
from typing import Any

import pika.spec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.extensions import FIRST_CLASS
from harebell.wire.v09.method import METHODS, Method
from harebell.wire.v09.spec import MethodSpec
from tests.unit.wire.v09.tables import TABLES, shortstr

NUMBERS = {
    "connection 10": "start 10, start-ok 11, secure 20, secure-ok 21, tune 30, tune-ok 31, open 40,"
    "open-ok 41, close 50, close-ok 51, blocked 60, unblocked 61, update-secret 70,"
    "update-secret-ok 71",
    "channel 20": "open 10, open-ok 11, flow 20, flow-ok 21, close 40, close-ok 41",
    "access 30": "request 10, request-ok 11",
    "exchange 40": "declare 10, declare-ok 11, delete 20, delete-ok 21, bind 30, bind-ok 31,"
    "unbind 40, unbind-ok 51",
    "queue 50": "declare 10, declare-ok 11, bind 20, bind-ok 21, purge 30, purge-ok 31, delete 40,"
    "delete-ok 41, unbind 50, unbind-ok 51",
    "basic 60": "qos 10, qos-ok 11, consume 20, consume-ok 21, cancel 30, cancel-ok 31, publish 40,"
    "return 50, deliver 60, get 70, get-ok 71, get-empty 72, ack 80, reject 90,"
    "recover-async 100, recover 110, recover-ok 111, nack 120",
    "confirm 85": "select 10, select-ok 11",
    "tx 90": "select 10, select-ok 11, commit 20, commit-ok 21, rollback 30, rollback-ok 31",
}

BOTH_SEND = {
    "connection.close", "connection.close-ok", "channel.close", "channel.close-ok", "channel.flow",
    "channel.flow-ok", "basic.ack", "basic.nack", "basic.cancel", "basic.cancel-ok",
}  # fmt: skip
SERVER_ASKS = {
    "connection.start", "connection.secure", "connection.tune", "connection.blocked",
    "connection.unblocked", "basic.return", "basic.deliver",
}  # fmt: skip
SPECS = tuple(spec for spec in AMQP_0_9_1.methods if spec.class_id < FIRST_CLASS)
"""All but Harebell's own classes, of which nobody else has a table."""
by_name = pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])


def pika_class(spec: MethodSpec) -> Any:
    """pika's class of a method."""
    words = ["".join(part.capitalize() for part in w.split("-")) for w in spec.name.split(".")]
    return getattr(getattr(pika.spec, words[0]), words[1])


def pika_method(spec: MethodSpec) -> Any:
    """A method of pika's, with whatever its constructor sets."""
    kind = pika_class(spec)
    return kind(b"", "") if spec.name == "connection.update-secret" else kind()


PIKA_NAMES = {"global_": "global_qos"}


def test_classes_and_methods_have_their_published_numbers():
    published = {
        (int(head.split()[1]), int(number)): f"{head.split()[0]}.{name}"
        for head, line in NUMBERS.items()
        for name, number in (entry.split() for entry in line.split(","))
    }
    assert {(spec.class_id, spec.method_id): spec.name for spec in SPECS} == published


def test_every_method_of_the_table_is_a_typed_one():
    assert {spec.name for spec in SPECS} <= set(METHODS)


@by_name
def test_pika_has_the_same_number_and_waits_for_the_same_methods(spec: MethodSpec):
    other = pika_class(spec)
    assert spec.class_id << 16 | spec.method_id == other.INDEX
    assert pika_method(spec).synchronous == spec.synchronous


@by_name
def test_the_methods_that_answer_are_of_the_same_class_and_known(spec: MethodSpec):
    for name in spec.responses:
        answer = AMQP_0_9_1.named(name)
        assert answer.class_id == spec.class_id
        assert answer.from_server if spec.from_client else answer.from_client


@by_name
def test_requests_come_from_clients_and_answers_from_servers(spec: MethodSpec):
    if spec.name in BOTH_SEND:
        senders = (True, True)
    elif spec.name in SERVER_ASKS:
        senders = (False, True)
    elif spec.name in ("connection.start-ok", "connection.secure-ok", "connection.tune-ok"):
        senders = (True, False)
    else:
        answers = {name for other in SPECS for name in other.responses}
        senders = (spec.name not in answers, spec.name in answers)
    assert (spec.from_client, spec.from_server) == senders


def test_four_methods_carry_content():
    carriers = {spec.name for spec in SPECS if spec.has_content}
    assert carriers == {"basic.publish", "basic.return", "basic.deliver", "basic.get-ok"}


@by_name
def test_a_method_of_defaults_survives_the_round_trip(spec: MethodSpec):
    method = spec.type()
    assert AMQP_0_9_1.decode(AMQP_0_9_1.encode(method)) == method


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "octet": st.integers(0, 2**8 - 1),
    "short": st.integers(0, 2**16 - 1),
    "long": st.integers(0, 2**32 - 1),
    "longlong": st.integers(0, 2**64 - 1),
    "shortstr": shortstr(60),
    "longstr": st.binary(max_size=60),
    "bit": st.booleans(),
    "table": TABLES,
}
PLAIN_TABLES = st.dictionaries(
    shortstr(20), st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(), max_size=4
)


@st.composite
def some_methods(draw: st.DrawFn, tables: st.SearchStrategy[Any] = TABLES) -> Method:
    """Any method with any values."""
    spec = draw(st.sampled_from(SPECS))
    return spec.type(
        **{
            field.attribute: draw(tables if field.domain == "table" else VALUES[field.domain])
            for field in spec.fields
            if field.attribute
        }
    )


@given(some_methods())
def test_any_method_survives_the_round_trip(method: Method):
    assert AMQP_0_9_1.decode(AMQP_0_9_1.encode(method)) == method


@given(some_methods(PLAIN_TABLES))
def test_pika_writes_the_same_octets(method: Method):
    spec = AMQP_0_9_1.spec_of(method)
    other = pika_method(spec)
    for field in spec.fields:
        if field.attribute:
            name = PIKA_NAMES.get(field.attribute, field.attribute)
            assert name in vars(other)
            setattr(other, name, getattr(method, field.attribute))
    theirs = struct.pack(">I", other.INDEX) + b"".join(other.encode())
    assert AMQP_0_9_1.encode(method) == theirs

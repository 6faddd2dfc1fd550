"""The reader of version tables, and the errors of the codec that is made from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.spec import ProtocolSpec
from tests.unit.wire.v09.attempt import attempt

TABLE = """
queue 50
  # Half of the class is enough here.
  declare     10  C   -> declare-ok: short _, shortstr queue,
                      bit passive durable
                      _ nowait, table arguments
  declare-ok  11  S   : shortstr queue, long message-count consumer-count

basic 60
  publish     40  C   +content: shortstr exchange
  get         70  C   -> get-ok get-empty
  get-ok      71  S   +content
  get-empty   72  S
  ack         80  CS
"""


@pytest.fixture(scope="module")
def small() -> ProtocolSpec:
    return ProtocolSpec("test", TABLE)


def test_a_table_says_who_sends_what_and_who_answers(small: ProtocolSpec):
    declare = small.named("queue.declare")
    assert (declare.class_id, declare.method_id) == (50, 10)
    assert declare.from_client
    assert not declare.from_server
    assert declare.responses == ("queue.declare-ok",)
    assert declare.synchronous
    assert not declare.has_content
    get = small.named("basic.get")
    assert get.responses == ("basic.get-ok", "basic.get-empty")
    assert small.named("basic.get-ok").has_content
    assert not small.named("basic.get-ok").synchronous
    ack = small.named("basic.ack")
    assert ack.from_client
    assert ack.from_server


def test_fields_go_on_over_continued_lines(small: ProtocolSpec):
    fields = small.named("queue.declare").fields
    assert [(field.name, field.attribute, field.domain) for field in fields] == [
        ("_", "", "short"),
        ("queue", "queue", "shortstr"),
        ("passive", "passive", "bit"),
        ("durable", "durable", "bit"),
        ("_", "", "bit"),
        ("nowait", "nowait", "bit"),
        ("arguments", "arguments", "table"),
    ]


def test_reserved_fields_are_written_as_zero_and_ignored_when_read(small: ProtocolSpec):
    octets = small.encode(m.QueueDeclare("q", nowait=True, exclusive=True))
    assert octets == b"\x00\x32\x00\x0a\x00\x00\x01q\x08\x00\x00\x00\x00"
    read = small.decode(b"\x00\x32\x00\x0a\xff\xff\x01q\xff\x00\x00\x00\x00")
    assert read == m.QueueDeclare("q", passive=True, durable=True, nowait=True)


def test_fields_that_a_version_lacks_keep_their_defaults(small: ProtocolSpec):
    read = small.decode(small.encode(m.BasicPublish("x", "key", mandatory=True)))
    assert read == m.BasicPublish("x")


def test_a_table_laid_over_another_replaces_and_adds_methods():
    over = "basic 60\n  ack 80 S: bit multiple\n  nack 120 C\n"
    spec = ProtocolSpec("test", TABLE, over)
    assert not spec.named("basic.ack").from_client
    assert spec.encode(m.BasicAck(1, True)) == b"\x00\x3c\x00\x50\x01"
    assert spec.method(60, 120).name == "basic.nack"
    assert spec.named("queue.declare").class_id == 50


def test_a_table_laid_over_a_version_removes_methods_and_classes(small: ProtocolSpec):
    over = "- queue\nbasic 60\n  - get-ok get-empty\n  get 70 C\n"
    spec = ProtocolSpec("test", small, over)
    assert [method.name for method in spec.methods] == ["basic.publish", "basic.get", "basic.ack"]
    assert spec.named("basic.ack") is small.named("basic.ack")
    assert small.named("basic.get-ok").has_content
    with pytest.raises(ProtocolError, match="unknown class id 50"):
        spec.method(50, 10)


def test_the_number_of_a_removed_class_is_free(small: ProtocolSpec):
    spec = ProtocolSpec("test", small, "- queue\ntx 50\n  select 10 C\n")
    assert spec.method(50, 10).name == "tx.select"


def test_methods_are_listed_by_their_numbers(small: ProtocolSpec):
    numbers = [(spec.class_id, spec.method_id) for spec in small.methods]
    assert numbers == sorted(numbers)
    assert len(numbers) == 7


def test_nine_bits_take_two_octets():
    table = "access 30\n  request 10 C: bit _ _ _ _ exclusive passive active write read\n"
    spec = ProtocolSpec("test", table)
    octets = spec.encode(m.AccessRequest(exclusive=True, passive=False, active=False, write=False))
    assert octets == b"\x00\x1e\x00\x0a\x10\x01"
    assert spec.decode(octets) == m.AccessRequest("/data", True, False, False, False, True)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("queue 50\n  purge 30 C: shortstr colour\n", "QueuePurge has no attribute colour"),
        ("queue 50\n  purge 30 C: integer queue\n", "unknown data type 'integer'"),
        ("queue 50\n  purge 30 C => purge-ok\n", "cannot read '=> purge-ok'"),
        ("queue 50\n  purge 30 C\n  delete 30 C\n", "one number to two methods"),
        ("queue 50\n  - purge\n", "remove queue.purge, which is not there"),
        ("- queue\n", "remove queue, which is not there"),
    ],
)
def test_a_faulty_table_is_refused_with_the_reason(table: str, why: str):
    with pytest.raises(ValueError, match=why):
        ProtocolSpec("test", table)


# --- errors of the codec ------------------------------------------------------------------------


def refused(payload: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        AMQP_0_9_1.decode(payload)
    return caught.value


def test_an_unknown_class_is_named_by_its_number():
    error = refused(b"\x00\x63\x00\x0a")
    assert (error.code, error.text) == (503, "unknown class id 99")
    assert (error.class_id, error.method_id) == (99, 10)
    assert error.hard


def test_an_unknown_method_of_a_known_class_is_not_implemented():
    error = refused(b"\x00\x32\x00\x63")
    assert (error.code, error.text) == (540, "unknown method id 99 in class queue")
    assert (error.class_id, error.method_id) == (50, 99)


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\x00\x32\x00"])
def test_a_frame_without_class_and_method_id_is_a_syntax_error(payload: bytes):
    assert refused(payload).code == 502


def test_a_field_over_the_end_is_named():
    error = refused(b"\x00\x32\x00\x0a\x00\x00\x05ab")
    assert error.code == 502
    assert error.text == "queue.declare: field 'queue': it runs over the end of the frame"
    assert (error.class_id, error.method_id) == (50, 10)


def test_missing_bits_are_named_by_the_first_of_them():
    error = refused(b"\x00\x32\x00\x0a\x00\x00\x00")
    assert error.text == "queue.declare: field 'passive': it runs over the end of the frame"


def test_a_reserved_field_over_the_end_is_told_from_the_others():
    error = refused(b"\x00\x32\x00\x0a\x00")
    assert error.text == "queue.declare: reserved field: it runs over the end of the frame"


def test_a_malformed_table_is_named_by_method_field_and_key():
    error = refused(b"\x00\x32\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x03\x01kZ")
    assert error.code == 502
    assert error.text == (
        "queue.declare: field 'arguments': malformed field table: "
        "'k': unknown type octet 0x5a ('Z')"
    )


def test_garbage_after_the_last_field_is_a_syntax_error():
    error = refused(AMQP_0_9_1.encode(m.TxSelect()) + b"abc")
    assert (error.code, error.text) == (
        502,
        "tx.select: 3 octets of garbage after the last field",
    )
    assert (error.class_id, error.method_id) == (90, 10)


def test_text_that_is_no_utf8_is_a_frame_error():
    error = refused(b"\x00\x32\x00\x0a\x00\x00\x01\xff\x00\x00\x00\x00\x00")
    assert (error.code, error.text) == (501, "Malformed UTF-8 in shortstr")
    assert (error.class_id, error.method_id) == (50, 10)


@pytest.mark.parametrize(
    ("method", "why"),
    [
        (m.QueueDeclare(queue="q" * 256), "queue.declare: queue: it has 256 octets"),
        (m.BasicQos(prefetch_count=65_536), "basic.qos: prefetch-count: 65536 is not between"),
        (m.BasicAck(delivery_tag=-1), "basic.ack: delivery-tag: -1 is not between"),
        (
            m.QueueDeclare(arguments={"x-size": 2**64}),
            "queue.declare: arguments: 'x-size': 18446744073709551616 does not fit",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_method_and_field(method: m.Method, why: str):
    with pytest.raises(ValueError, match=why):
        AMQP_0_9_1.encode(method)


@pytest.mark.parametrize(
    ("method", "why"),
    [
        (m.QueueDeclare(queue=b"q"), "queue.declare: queue: must be a str, not bytes"),
        (m.QueueDeclare(durable="yes"), "queue.declare: durable: must be a bool, not 'yes'"),
        (m.BasicQos(prefetch_count="9"), "basic.qos: prefetch-count: must be an int, not str"),
        (m.ConnectionSecure(challenge="?"), "challenge: must be bytes, not str"),
        (m.QueueDeclare(arguments={"x": object()}), "arguments: 'x': .* cannot hold object"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_by_method_and_field(method: m.Method, why: str):
    with pytest.raises(TypeError, match=why):
        AMQP_0_9_1.encode(method)


def test_a_method_of_another_version_cannot_be_encoded(small: ProtocolSpec):
    with pytest.raises(TypeError, match=r"AMQP test has no method TxSelect\(\)"):
        small.encode(m.TxSelect())


@given(st.binary(max_size=80))
def test_arbitrary_payloads_are_read_or_refused_with_a_documented_code(payload: bytes):
    for spec in AMQP_0_9_1.methods:
        found = attempt(AMQP_0_9_1.decode, spec.head + payload)
        if isinstance(found, ProtocolError):
            assert found.code in (501, 502)
            assert (found.class_id, found.method_id) == (spec.class_id, spec.method_id)
        else:
            assert type(found) is spec.type


@given(st.binary(max_size=12))
def test_arbitrary_heads_are_read_or_refused_with_a_documented_code(payload: bytes):
    found = attempt(AMQP_0_9_1.decode, payload)
    if isinstance(found, ProtocolError):
        assert found.code in (501, 502, 503, 540)
    else:
        assert AMQP_0_9_1.spec_of(found).head == payload[:4]

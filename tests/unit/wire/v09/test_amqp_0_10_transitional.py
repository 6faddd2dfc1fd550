"""The table of transitional 0-10, against the numbers and types of the document."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.methods import BasicPublish, ExchangeDeclare
from harebell.wire.v09.spec import MethodSpec

DOCUMENT = Path(__file__).with_name("amqp_0_10_transitional.tsv")
OURS = {
    "rfc1982-long-set": "serials",
    "content": "body",
    "table": "typed-table",
}
UNUSED = {"channel.open out-of-band": "_", "basic.get-empty cluster-id": "_"}
METHODS = SPEC.methods
by_name = pytest.mark.parametrize("spec", METHODS, ids=[spec.name for spec in METHODS])


def documented() -> list[dict[str, str]]:
    """The rows of the document."""
    lines = DOCUMENT.read_text().splitlines()[1:]
    return list(csv.DictReader(lines, delimiter="\t"))


ROWS = {row["method"]: row for row in documented()}


def test_every_method_of_the_document_is_there_and_no_other():
    assert {spec.name for spec in METHODS} == set(ROWS)


@by_name
def test_a_method_has_its_documented_numbers_and_answers(spec: MethodSpec):
    row = ROWS[spec.name]
    assert (spec.class_id, spec.method_id) == (int(row["class id"]), int(row["method id"]))
    class_name = spec.name.split(".")[0]
    assert list(spec.responses) == [f"{class_name}.{name}" for name in row["responses"].split()]
    assert spec.has_content == (row["content"] == "1")


@by_name
def test_those_send_it_whose_peer_has_to_implement_it(spec: MethodSpec):
    implemented = ROWS[spec.name]["implemented by"]
    assert spec.from_client == ("s" in implemented)
    assert spec.from_server == ("c" in implemented)


@by_name
def test_fields_stand_in_the_documented_order_with_their_types(spec: MethodSpec):
    fields = []
    for entry in filter(None, ROWS[spec.name]["fields"].split(", ")):
        kind, name = entry.split()
        if kind == "rfc1982-long" or name.endswith("-mark"):
            kind = "serial"
        name = UNUSED.get(f"{spec.name} {name}", name)
        fields.append((OURS.get(kind, kind), name))
    assert [(field.domain, field.name) for field in spec.fields] == fields


@by_name
def test_a_method_of_defaults_survives_the_round_trip(spec: MethodSpec):
    method = spec.type()
    assert SPEC.decode(SPEC.encode(method)) == method


def test_reject_unroutable_is_what_other_versions_call_mandatory():
    octets = SPEC.encode(BasicPublish(routing_key="k", mandatory=True))
    assert octets[-1] == 1


def test_tickets_are_read_where_they_stand():
    method = ExchangeDeclare("e", "topic", alternate_exchange="other", ticket=5)
    octets = SPEC.encode(method)
    assert octets[4:6] == b"\0\x05"
    assert SPEC.decode(octets) == method

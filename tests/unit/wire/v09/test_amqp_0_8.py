"""The tables of 0-8 and 0-9 say what the specifications' XML files say, field by field."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.wire.v09 import amqp_0_8, amqp_0_9
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.domains import ABSENT
from harebell.wire.v09.spec import ProtocolSpec
from tests.unit.wire.v09.attempt import attempt

SPECS = Path("/usr/share/amqp/specs")
"""Where Debian's package `amqp-specs` puts them."""
RESERVED = {
    "channel.open.out-of-band",
    "basic.get-empty.cluster-id",
    # Nobody can resume a channel here, so its identifier says nothing.
    "channel.open-ok.channel-id",
}
"""Fields that the documents name and that are written as zero or empty here."""
UNSAID = {"exchange.bound": ("exchange.bound-ok",)}
"""Answers that a document has and does not connect with their questions."""
ALIASES_0_9 = {"basic.recover": "basic.recover-async"}


class Line(NamedTuple):
    """A method as a document or a table has it."""

    class_id: int
    method_id: int
    senders: str
    responses: tuple[str, ...]
    has_content: bool
    fields: tuple[tuple[str, str], ...]


def _document(version: str, left_out: tuple[str, ...] = ()) -> dict[str, Line]:
    directory = SPECS / version
    assert directory.exists(), "apt-get install amqp-specs, or tools/setup.sh test"
    (path,) = directory.glob("*.xml")
    root = ET.parse(path).getroot()
    domains = {each.get("name", ""): each.get("type", "") for each in root.findall("domain")}

    def resolved(name: str) -> str:
        while name in domains and domains[name] != name:
            name = domains[name]
        return name

    found: dict[str, Line] = {}
    for group in root.findall("class"):
        name = group.get("name", "")
        if name in left_out:
            continue
        for method in group.findall("method"):
            chassis = method.findall("chassis")
            senders = {"server": "C", "client": "S"}
            found[f"{name}.{method.get('name')}"] = Line(
                int(group.get("index", "")),
                int(method.get("index", "")),
                "".join(sorted(senders[each.get("name", "")] for each in chassis)),
                tuple(f"{name}.{each.get('name')}" for each in method.findall("response")),
                method.get("content") == "1",
                tuple(
                    (
                        each.get("name", "").replace(" ", "-").removeprefix("queue-name-"),
                        resolved(each.get("domain") or each.get("type") or ""),
                    )
                    for each in method.findall("field")
                ),
            )
    return found


def _table(spec: ProtocolSpec) -> dict[str, Line]:
    return {
        each.name: Line(
            each.class_id,
            each.method_id,
            "C" * each.from_client + "S" * each.from_server,
            each.responses,
            each.has_content,
            tuple(
                (field.name, field.domain.removeprefix("plain-").removesuffix("?"))
                for field in each.fields
            ),
        )
        for each in spec.methods
    }


def _same(ours: dict[str, Line], theirs: dict[str, Line], aliases: dict[str, str]) -> None:
    for name, line in theirs.items():
        mine = ours[aliases.get(name, name)]
        pairs = list(zip(mine.fields, line.fields, strict=True))
        for (here, _), (there, _) in pairs:
            assert here != "_" or f"{name}.{there}" in RESERVED, name
        fields = tuple((there if here == "_" else here, kind) for (here, kind), (there, _) in pairs)
        responses = line.responses or UNSAID.get(name, ())
        assert mine._replace(fields=fields) == line._replace(responses=responses), name


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        (amqp_0_8.PUBLISHED, "0-8"),
        (ProtocolSpec("0-8", amqp_0_8.PUBLISHED, amqp_0_8.QPID), "0-8-qpid"),
    ],
)
def test_the_tables_of_0_8_are_those_of_the_documents(spec: ProtocolSpec, version: str) -> None:
    ours, theirs = _table(spec), _document(version)
    assert ours.keys() == theirs.keys()
    _same(ours, theirs, {})


def test_the_table_of_0_9_is_that_of_the_document() -> None:
    ours = _table(amqp_0_9.PUBLISHED)
    theirs = _document("0-9", left_out=("message",))
    assert ours.keys() == {ALIASES_0_9.get(name, name) for name in theirs}
    renamed = {
        name: line._replace(
            fields=tuple(
                ("arguments" if (name, field) == ("basic.consume", "filter") else field, kind)
                for field, kind in line.fields
            )
        )
        for name, line in theirs.items()
    }
    _same(ours, renamed, ALIASES_0_9)


def test_the_spoken_0_9_has_every_method_of_qpids() -> None:
    ours = _table(AMQP_0_9)
    theirs = _document("0-9-qpid", left_out=("message",))
    numbers = {(line.class_id, line.method_id) for line in ours.values()}
    assert {(line.class_id, line.method_id) for line in theirs.values()} <= numbers


def test_consume_has_arguments_where_octets_are_left() -> None:
    for spec in (AMQP_0_8, AMQP_0_9):
        published = m.BasicConsume("q", "t", arguments=ABSENT)
        payload = spec.encode(published)
        assert payload.endswith(b"\x01q\x01t\x00")
        found = spec.decode(payload)
        assert isinstance(found, m.BasicConsume)
        assert found.arguments is ABSENT
        qpids = spec.decode(payload + b"\x00\x00\x00\x00")
        assert isinstance(qpids, m.BasicConsume)
        assert qpids.arguments == {}
        assert qpids.arguments is not ABSENT


def test_half_a_table_of_arguments_is_refused() -> None:
    payload = AMQP_0_8.encode(m.BasicConsume("q", "t", arguments=ABSENT))
    with pytest.raises(ProtocolError) as refused:
        AMQP_0_8.decode(payload + b"\x00\x00")
    assert refused.value.code == 502


@pytest.mark.parametrize("spec", [AMQP_0_8, AMQP_0_9], ids=["0-8", "0-9"])
@given(data=st.data())
def test_whatever_arrives_is_a_method_or_a_protocol_error(
    spec: ProtocolSpec, data: st.DataObject
) -> None:
    method = data.draw(st.sampled_from(spec.methods))
    found = attempt(spec.decode, method.head + data.draw(st.binary(max_size=60)))
    if isinstance(found, ProtocolError):
        assert found.code in (501, 502)
    else:
        assert spec.spec_of(found) is method

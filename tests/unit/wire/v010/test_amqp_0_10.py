"""The table of AMQP 0-10 says what the specification's XML says."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.spec import CompositeSpec

DOCUMENT = Path("/usr/share/amqp/specs/0-10-qpid/amqp.0-10-qpid-errata.stripped.xml")
"""Where Debian's package `amqp-specs` puts it."""
NS = "{http://www.amqp.org/schema/amqp.xsd}"
MILDER = {
    ("message.delivery-properties", "priority"),
    ("message.delivery-properties", "delivery-mode"),
}
"""Fields that the document requires and that no peer sends."""


def test_the_table_is_complete() -> None:
    counts = (len(AMQP_0_10.controls), len(AMQP_0_10.commands), len(AMQP_0_10.structs))
    assert counts == (25, 59, 17)


def test_numbers_and_fields_are_those_of_the_document() -> None:
    assert DOCUMENT.exists(), "apt-get install amqp-specs, or tools/setup.sh test"
    found = _Document(ET.parse(DOCUMENT).getroot()).composites()
    ours = {**AMQP_0_10.controls, **AMQP_0_10.commands, **AMQP_0_10.structs}
    assert {name: _line(spec) for name, spec in ours.items()} == found


def _line(spec: CompositeSpec) -> tuple[object, ...]:
    fields = tuple(
        (f.name, f.kind, f.required or (spec.name, f.name) in MILDER) for f in spec.fields
    )
    return spec.code, spec.size, spec.pack, fields


class _Document:
    """The XML, with its domains resolved."""

    def __init__(self, root: ET.Element) -> None:
        self.root = root
        self.domains: dict[str, str] = {}
        self.structs: set[str] = set()
        for domain in root.findall(f"{NS}domain"):
            self.domains[domain.get("name", "")] = domain.get("type", "")
        for each in root.findall(f"{NS}class"):
            name = each.get("name", "")
            for domain in each.iter(f"{NS}domain"):
                self.domains[f"{name}.{domain.get('name')}"] = domain.get("type", "")
            self.structs |= {f"{name}.{s.get('name')}" for s in each.iter(f"{NS}struct")}

    def kind(self, name: str, class_name: str) -> str:
        for key in (f"{class_name}.{name}", name):
            if key in self.domains:
                return self.kind(self.domains[key], class_name)
            if key in self.structs:
                return key
        return name

    def composites(self) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        for each in self.root.findall(f"{NS}class"):
            class_name, code = each.get("name", ""), int(each.get("code", "0"), 16)
            for tag in ("struct", "control", "command"):
                for node in each.iter(f"{NS}{tag}"):
                    own = node.get("code")
                    number = -1 if own is None else code << 8 | int(own, 16)
                    size, pack = int(node.get("size", "0")), int(node.get("pack", "2"))
                    found[f"{class_name}.{node.get('name')}"] = (
                        number,
                        size,
                        pack,
                        tuple(
                            (
                                field.get("name"),
                                self.kind(field.get("type", ""), class_name),
                                field.get("required") == "true",
                            )
                            for field in node.findall(f"{NS}field")
                        ),
                    )
        return found

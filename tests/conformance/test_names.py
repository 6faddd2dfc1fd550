"""Names: what the specification calls something is what code and wire call it, everywhere."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import harebell
from harebell.front.amqp_0_9_1.dispatch import HANDLERS
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL
from harebell.wire.v09.method import METHODS
from harebell.wire.v09.reply_codes import HARD, NAMES, REPLY_SUCCESS, SOFT

PUBLISHED = {
    200: "reply-success",
    311: "content-too-large",
    312: "no-route",
    313: "no-consumers",
    320: "connection-forced",
    402: "invalid-path",
    403: "access-refused",
    404: "not-found",
    405: "resource-locked",
    406: "precondition-failed",
    501: "frame-error",
    502: "syntax-error",
    503: "command-invalid",
    504: "channel-error",
    505: "unexpected-frame",
    506: "resource-error",
    530: "not-allowed",
    540: "not-implemented",
    541: "internal-error",
}
"""The constants of AMQP 0-9-1 1.2; 312 is an erratum's."""


OWN = {409, 410, 411, 412, 413}
"""Codes of classes that only Harebell has (docs/protocols/extensions.md)."""


@pytest.mark.rule("0-9-1#001")
def test_reply_codes_go_by_the_names_of_the_specification() -> None:
    assert {code: name.upper().replace("-", "_") for code, name in PUBLISHED.items()} == {
        200: "REPLY_SUCCESS"
    } | {code: name for code, name in NAMES.items() if code not in OWN}
    assert set(NAMES) >= OWN
    assert REPLY_SUCCESS == 200
    assert not set(SOFT) & set(HARD)


@pytest.mark.rule("0-9-1#002")
@pytest.mark.parametrize("spec", AMQP_0_9_1.methods, ids=lambda spec: spec.name)
def test_a_method_has_one_name_in_table_class_and_fields(spec: object) -> None:
    name: str = spec.name  # type: ignore[attr-defined]
    kind = METHODS[name]
    assert kind.__name__ == "".join(part.capitalize() for part in name.replace(".", "-").split("-"))
    fields = [field.name for field in spec.fields if field.name != "_"]  # type: ignore[attr-defined]
    attributes = [name.rstrip("_").replace("_", "-") for name in kind.__struct_fields__]
    assert [name for name in attributes if name in fields] == fields
    others = {
        field.name
        for version in (AMQP_0_8, AMQP_0_9, AMQP_0_10_TRANSITIONAL)
        for method in version.methods
        if method.name == name
        for field in method.fields
    }
    assert set(attributes) <= {*fields, *others}


@pytest.mark.rule("0-9-1#002")
def test_the_handlers_of_a_protocol_class_are_in_the_file_of_its_name() -> None:
    for kind, handler in HANDLERS.items():
        class_name = kind.NAME.partition(".")[0]
        home = handler.__module__.rpartition(".")[2]
        # The channel's own file holds what happens per message; flow.py has the class channel.
        assert home == {"channel": "flow"}.get(class_name, class_name), kind.NAME


@pytest.mark.rule("0-9-1#002")
def test_the_protocol_is_not_spelt_in_two_ways() -> None:
    """Words for things that the specification calls otherwise do not occur as names."""
    other_words = {"ctag", "dtag", "rkey", "exchg", "qname", "xname", "deliverytag", "routingkey"}
    found = []
    for path in Path(harebell.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = getattr(node, "id", getattr(node, "arg", getattr(node, "attr", "")))
            if isinstance(named, str) and named.lower() in other_words:
                found.append(f"{path.name}:{node.lineno}: {named}")  # type: ignore[attr-defined]
    assert not found

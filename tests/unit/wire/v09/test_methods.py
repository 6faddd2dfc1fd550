"""The typed methods: their names, their defaults, and what it costs to import them."""

from __future__ import annotations

import ast
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

from harebell.wire.v09 import methods
from harebell.wire.v09.method import METHODS, Method

STUBS = Path(__file__).parents[4] / "tools" / "method_stubs.py"
DTX = (["dtx", "demarcation"], ["dtx", "coordination"])


def test_every_class_is_named_after_its_method():
    for name, kind in METHODS.items():
        words = [word.lower() for word in re.findall("[A-Z][a-z]*", kind.__name__)]
        of_class = 2 if words[:2] in DTX else 1
        assert name == kind.NAME == f"{'-'.join(words[:of_class])}.{'-'.join(words[of_class:])}"


def test_a_stub_for_editors_has_every_method_of_its_module_with_its_fields():
    stubs = runpy.run_path(str(STUBS))
    for module in stubs["MODULES"]:
        statements = ast.parse(stubs["stub_of"](module)).body
        shown = {
            each.name: [field.target.id for field in each.body if isinstance(field, ast.AnnAssign)]
            for each in statements
            if isinstance(each, ast.ClassDef)
        }
        assert shown == {
            name: list(kind.__struct_fields__)
            for name, kind in vars(import_module(module)).items()
            if isinstance(kind, type) and kind.__module__ == module
        }


def test_every_method_of_the_module_is_registered():
    defined = [
        kind
        for kind in vars(methods).values()
        if isinstance(kind, type) and issubclass(kind, Method) and kind is not Method
    ]
    assert all(METHODS[kind.NAME] is kind for kind in defined)
    assert len(defined) > 50


def test_every_method_can_be_made_without_arguments():
    for kind in METHODS.values():
        assert kind() == kind()


def test_methods_with_equal_fields_are_equal():
    assert methods.BasicAck(5, True) == methods.BasicAck(delivery_tag=5, multiple=True)
    assert methods.BasicAck(5, True) != methods.BasicAck(5, False)
    assert methods.BasicAck(5, True) != methods.BasicReject(5, True)


def test_argument_tables_are_not_shared_between_methods():
    one = methods.QueueDeclare()
    one.arguments["x-max-length"] = 1
    assert methods.QueueDeclare().arguments == {}


def test_a_method_shows_its_fields():
    assert repr(methods.BasicAck(5, True)) == "BasicAck(delivery_tag=5, multiple=True)"


def test_an_unknown_field_is_refused():
    with pytest.raises(TypeError, match="reserved"):
        methods.QueueDeclare(reserved=1)  # type: ignore[call-arg]


def test_no_method_has_reserved_fields():
    for kind in METHODS.values():
        assert not any(field.startswith("reserved") for field in kind.__struct_fields__)

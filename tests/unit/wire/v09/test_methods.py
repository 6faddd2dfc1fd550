"""The typed methods: their names, their defaults, and what it costs to import them."""

from __future__ import annotations

import re

import pytest

from harebell.wire.v09 import methods
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.methods import METHODS, Method


def test_every_class_is_named_after_its_method():
    for name, kind in METHODS.items():
        words = re.findall("[A-Z][a-z]*", kind.__name__)
        assert name == kind.NAME == f"{words[0]}.{'-'.join(words[1:])}".lower()


def test_every_method_of_the_module_is_registered():
    defined = [
        kind
        for kind in vars(methods).values()
        if isinstance(kind, type) and issubclass(kind, Method) and kind is not Method
    ]
    assert defined
    assert set(defined) <= set(METHODS.values())


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
    with pytest.raises(TypeError, match="ticket"):
        methods.QueueDeclare(ticket=1)  # type: ignore[call-arg]


def test_no_method_of_0_9_1_has_reserved_fields_or_tickets():
    for spec in AMQP_0_9_1.methods:
        for field in spec.type.__struct_fields__:
            assert not field.startswith("reserved")
            assert field != "ticket" or spec.type is methods.AccessRequestOk

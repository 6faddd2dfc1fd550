"""Harebell's own classes: numbers of their own, and what a broker says about them."""

from __future__ import annotations

import pytest

from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL
from harebell.wire.v09.extensions import EXTENSIONS, FIRST_CLASS, VERSIONS, announced
from harebell.wire.v09.spec import ProtocolSpec


def own(spec: ProtocolSpec) -> set[str]:
    return {m.name.partition(".")[0] for m in spec.methods if m.class_id >= FIRST_CLASS}


def test_every_class_has_methods_in_0_9_1_under_a_number_of_its_own():
    assert own(AMQP_0_9_1) == {extension.name for extension in EXTENSIONS}
    numbers = {m.class_id for m in AMQP_0_9_1.methods if m.class_id >= FIRST_CLASS}
    assert len(numbers) == len(EXTENSIONS)
    assert {extension.version for extension in EXTENSIONS} <= set(range(1, 100))


@pytest.mark.parametrize("spec", [AMQP_0_8, AMQP_0_9, AMQP_0_10_TRANSITIONAL], ids=repr)
def test_no_other_version_has_any(spec: ProtocolSpec):
    assert own(spec) == set()


def test_a_broker_announces_a_table_of_versions():
    assert announced({"harebell": {"lease": 1, "bulk": 2}}) == {"lease": 1, "bulk": 2}
    assert announced({"harebell": dict(VERSIONS)}) == dict(VERSIONS)


@pytest.mark.parametrize("told", [None, "lease", 1, ["lease"], {"lease": True, "bulk": "1"}])
def test_nonsense_in_its_place_is_no_extension(told: object):
    assert announced({"harebell": told}) == {}
    assert announced({}) == {}

"""Parameters: kept as they are, over restarts, except those that are understood."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.model.broker import Broker
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import headers_of

VALUES: list[Any] = [None, 1, 1.5, True, "text", [1, "a", None], {"a": {"b": [1]}}]


@pytest.mark.parametrize("value", VALUES)
def test_any_value_comes_back_as_it_was(value: Any) -> None:
    store = MemoryStore(Gauge())
    broker = Broker(store, Gauge(), headers_of)
    broker.add_vhost("v").parameters.put("tool", "mine", value)
    again = Broker(store, Gauge(), headers_of)
    again.restore()
    assert again.vhosts["v"].parameters.values == {("tool", "mine"): value}
    assert again.vhosts["/"].parameters.values == {}


def test_a_deleted_parameter_stays_away() -> None:
    store = MemoryStore(Gauge())
    vhost = Broker(store, Gauge(), headers_of).add_vhost("v")
    vhost.parameters.put("tool", "mine", None)
    assert vhost.parameters.delete("tool", "mine")
    assert not vhost.parameters.delete("tool", "mine")
    again = Broker(store, Gauge(), headers_of)
    again.restore()
    assert again.vhosts["v"].parameters.values == {}


def test_a_deleted_vhost_takes_its_parameters_along() -> None:
    store = MemoryStore(Gauge())
    broker = Broker(store, Gauge(), headers_of)
    vhost = broker.add_vhost("v")
    vhost.parameters.put("vhost-limits", "limits", {"max-queues": 1})
    broker.delete_vhost(vhost)
    assert list(store.definitions.load("parameter")) == []
    assert broker.add_vhost("v").limits == {}


@pytest.mark.parametrize(
    ("component", "name", "value", "sentence"),
    [
        ("policy", "p", {}, "the component 'policy' has commands of its own"),
        ("operator_policy", "p", {}, "the component 'operator_policy' has commands"),
        ("vhost-limits", "other", {}, "has the one parameter 'limits', not 'other'"),
        ("vhost-limits", "limits", {"max-queues": "x"}, "max-queues is 'x'"),
    ],
)
def test_a_known_parameter_has_to_have_a_valid_value(
    component: str, name: str, value: Any, sentence: str
) -> None:
    vhost = Broker(MemoryStore(Gauge()), Gauge(), headers_of).add_vhost("v")
    with pytest.raises(Refusal, match=sentence):
        vhost.parameters.put(component, name, value)
    assert vhost.parameters.values == {}

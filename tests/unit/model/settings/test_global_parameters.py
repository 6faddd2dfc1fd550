"""Global parameters: kept as they are, over restarts."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.gauge import Gauge
from harebell.model.broker import Broker
from harebell.store.log.memory import MemoryStore
from tests.unit.model.settings.test_parameters import VALUES
from tests.unit.model.things import headers_of


@pytest.mark.parametrize("value", VALUES)
def test_any_value_comes_back_until_it_is_deleted(value: Any) -> None:
    store = MemoryStore(Gauge())
    Broker(store, Gauge(), headers_of).global_parameters.put("cluster_name", value)
    second = Broker(store, Gauge(), headers_of)
    second.restore()
    assert second.global_parameters.values == {"cluster_name": value}
    assert second.global_parameters.delete("cluster_name")
    assert not second.global_parameters.delete("cluster_name")
    third = Broker(store, Gauge(), headers_of)
    third.restore()
    assert third.global_parameters.values == {}

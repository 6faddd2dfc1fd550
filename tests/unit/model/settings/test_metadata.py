"""What a vhost is told about itself: kept over restarts, and refused when it means nothing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harebell.base.errors import StoreError
from harebell.base.gauge import Gauge
from harebell.model.broker import Broker
from harebell.model.settings.metadata import Metadata, MetadataError, metadata_of
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import headers_of

FULL = Metadata("for people", ("a", "b c"), "quorum", "interval:200", tracing=True)


@pytest.mark.parametrize("metadata", [Metadata(), FULL])
def test_metadata_come_back_from_their_row(metadata: Metadata) -> None:
    assert metadata_of(metadata.row()) == metadata


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"tags": ("a,b",)}, "the tag 'a,b' cannot be used"),
        ({"tags": ("",)}, "the tag '' cannot be used"),
        ({"default_queue_type": "qorum"}, "type 'qorum' is unknown: did you mean 'quorum'"),
        ({"durability": "disk"}, "the durability 'disk' is unknown: give one of fsync"),
    ],
)
def test_metadata_that_mean_nothing_are_refused_by_name(
    wrong: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(MetadataError, match=sentence):
        replace(Metadata(), **wrong)


def test_a_broker_brings_the_metadata_of_every_vhost_back() -> None:
    store = MemoryStore(Gauge())
    broker = Broker(store, Gauge(), headers_of)
    broker.vhosts["/"].set_metadata(replace(Metadata(), tracing=True))
    broker.add_vhost("v", FULL)
    again = Broker(store, Gauge(), headers_of)
    again.restore()
    assert again.vhosts["/"].metadata.tracing
    assert again.vhosts["/"].default_queue_type == ""
    assert again.vhosts["v"].metadata == FULL
    assert again.vhosts["v"].default_queue_type == "quorum"


def test_a_change_is_part_of_the_commit_that_gathers_now() -> None:
    store = MemoryStore(Gauge())
    vhost = Broker(store, Gauge(), headers_of).add_vhost("v")
    vhost.recorder.ticket = 0
    vhost.set_metadata(FULL)
    assert vhost.recorder.ticket == store.commit.ticket


def test_damaged_metadata_are_told() -> None:
    store = MemoryStore(Gauge())
    store.definitions.put("vhost", ("v",), {**FULL.row(), "durability": "disk"})
    with pytest.raises(StoreError, match="the metadata of vhost 'v' are damaged: the durability"):
        Broker(store, Gauge(), headers_of).restore()

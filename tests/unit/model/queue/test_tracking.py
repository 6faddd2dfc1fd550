"""Offsets kept for consumer tags."""

from __future__ import annotations

import pytest

from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.model.queue import tracking
from harebell.model.queue.tracking import Tracking
from harebell.store.log.memory import MemoryStore


def rows(store: MemoryStore) -> dict[tuple[str, ...], int]:
    return {key: fields["position"] for key, fields in store.definitions.load("offset")}


def test_only_the_last_offset_of_a_tag_is_written_and_only_when_asked() -> None:
    store = MemoryStore(Gauge())
    kept = Tracking("/", "s", store.definitions, store.commit)
    (one, nothing), (two, _) = kept.number_of("a"), kept.number_of("b")
    assert nothing == -1
    for number, offset in ((one, 3), (one, 5), (one, 4), (two, 0)):
        kept.acknowledged(number, offset)
    assert rows(store) == {}
    kept.write()
    assert store.commit.urgent
    assert rows(store) == {("/", "s", "a"): 5, ("/", "s", "b"): 0}
    assert kept.number_of("a") == (one, 5)
    store.commit.urgent = False
    kept.write()
    assert not store.commit.urgent


def test_offsets_from_before_are_known_and_go_with_the_stream() -> None:
    store = MemoryStore(Gauge())
    store.definitions.put("offset", ("/", "s", "a"), {"position": 9})
    store.definitions.put("offset", ("/", "other", "a"), {"position": 1})
    kept = Tracking("/", "s", store.definitions, store.commit, {"a": 9})
    kept.number_of("unused")
    assert kept.number_of("a") == (1, 9)
    kept.unstore()
    assert rows(store) == {("/", "other", "a"): 1}


def test_there_is_an_end_to_new_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "STREAM_TRACKED_TAGS", 1)
    store = MemoryStore(Gauge())
    kept = Tracking("/", "s", store.definitions, store.commit)
    kept.check("a")
    kept.number_of("a")
    kept.check("a")
    with pytest.raises(Refusal, match="kept for 1 consumer tags, no more are possible, in queue"):
        kept.check("b")

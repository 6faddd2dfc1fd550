"""Figures as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.cli.verbs.status import duration, rows, size_text


def overview(**changed: Any) -> dict[str, Any]:
    return {
        "version": "1.0",
        "implementation": "native",
        "loop": "uvloop",
        "pid": 7,
        "uptime_seconds": 61.2,
        "data_dir": "somewhere",
        "listeners": ["amqp://127.0.0.1:5672", "amqps://127.0.0.1:5671"],
        "state": "running",
        "listeners_suspended": False,
        "connections": 1,
        "channels": 2,
        "queues": 3,
        "consumers": 4,
        "messages_ready": 5,
        "messages_unacknowledged": 6,
        "messages_leased": 7,
        "memory_used_bytes": 1024,
        "memory_messages_bytes": 512,
        "memory_high_watermark_bytes": 4096,
        "memory_alarm": False,
        "blocked_connections": 0,
        "durability": "fsync",
        "weaker_durability": ["vhost 'v' (os)"],
        "disk_free_bytes": 2048,
        "disk_free_limit_bytes": 0,
        "damage_reports": 0,
        "damage_last": "",
        "quarantined_files": 0,
        "shortages": [],
        **changed,
    }


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (3 * 2**30, "3.0 GiB"),
        (2**42, "4.0 TiB"),
    ],
)
def test_sizes_are_short(count: int, shown: str) -> None:
    assert size_text(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.9, "0 s"),
        (59, "59 s"),
        (61.2, "1 min 1 s"),
        (3600, "1 h 0 min 0 s"),
        (90_061, "1 d 1 h 1 min 1 s"),
    ],
)
def test_durations_begin_with_what_counts(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_every_address_has_a_row() -> None:
    shown = [value for name, value in rows(overview()) if name == "listening on"]
    assert shown == ["amqp://127.0.0.1:5672", "amqps://127.0.0.1:5671"]


def test_memory_is_compared_with_its_watermark() -> None:
    shown = dict(rows(overview()))
    assert shown["memory"] == "1.0 KiB (25% of 4.0 KiB)"
    assert shown["messages in memory"] == "512 B"
    alarmed = overview(memory_high_watermark_bytes=0, memory_alarm=True)
    said = "1.0 KiB (the watermark is 0); publishers are blocked"
    assert dict(rows(alarmed))["memory"] == said


def test_less_durability_is_named_beside_the_brokers_own() -> None:
    assert dict(rows(overview()))["durability"] == "fsync; vhost 'v' (os)"
    assert dict(rows(overview(weaker_durability=[])))["durability"] == "fsync"


def test_damage_is_counted_and_the_last_of_it_named() -> None:
    assert dict(rows(overview()))["damage"] == "none"
    kept = overview(quarantined_files=3)
    assert dict(rows(kept))["damage"] == "3 files in quarantine"
    found = overview(damage_reports=2, damage_last="a.seg: bad", quarantined_files=3)
    assert dict(rows(found))["damage"] == (
        "reported 2 times since the start, at last: a.seg: bad; 3 files in quarantine"
    )


def test_the_lag_of_the_event_loop_is_shown_where_it_was_asked_for() -> None:
    shown = dict(rows(overview(event_loop_lag_seconds=0.0123, event_loop_busy_seconds=0.004)))
    assert shown["event loop late by"] == "12.3 ms"
    assert shown["event loop busy for"] == "4.0 ms"
    assert "event loop late by" not in dict(rows(overview()))

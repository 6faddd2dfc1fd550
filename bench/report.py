"""Medians over runs, and the table that people read."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from bench.measure import Result
from bench.scenarios import (
    BACKLOG,
    FAN_IN,
    HEARTBEATS,
    IDLE,
    OPENING,
    OPENING_ALONE,
    OPENING_CONSUMER,
    OPENING_LINK,
    RESTART,
    RESTART_MORE,
    SCENARIOS,
    SELECTING,
    START,
    START_HTTP,
    TOPICS,
)

_FIGURES = Result.__struct_fields__[2:]


def medians(results: Iterable[Result]) -> list[Result]:
    """One result per broker and scenario, in the order in which they were first seen."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.scenario, result.broker), []).append(result)
    middle = []
    for (scenario, broker), group in groups.items():
        figures = {}
        for name in _FIGURES:
            values = [value for each in group if (value := getattr(each, name)) is not None]
            if values:
                figures[name] = statistics.median(values)
        middle.append(Result(broker=broker, scenario=scenario, **figures))
    return middle


def shown(value: float | None, places: int) -> str:
    """A figure with thousands apart; a dash for none."""
    return "-" if value is None else f"{value:,.{places}f}"


def multiple(value: float | None, floor: float | None) -> float | None:
    """How many times the floor a figure is; None where one of them was not measured."""
    return value / floor if value and floor else None


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    """Return a table without the columns in which no row has a figure."""
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    empty = [all(cell == "-" for cell in cells) for cells in zip(*rows, strict=True)]
    for name, nothing in zip(columns, empty, strict=True):
        if not nothing:
            words = name in ("scenario", "broker")
            table.add_column(name, justify="left" if words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(cell for cell, nothing in zip(row, empty, strict=True) if not nothing))
    return table


def show(results: list[Result], console: Console) -> None:
    """Print medians as tables."""
    loads = [result for result in results if result.scenario in SCENARIOS]
    rows: list[tuple[str, ...]]
    columns: tuple[str, ...]
    if loads:
        floors = {
            result.scenario: result.us_per_message for result in loads if result.broker == "floor"
        }
        columns = ("scenario", "broker", "us/msg", "x floor", "msg/s", "of disk", "p50 us")
        columns += ("p99 us", "MiB")
        rows = [
            (
                result.scenario,
                result.broker,
                shown(result.us_per_message, 2),
                shown(multiple(result.us_per_message, floors.get(result.scenario)), 1),
                shown(result.messages_per_second, 0),
                "-" if result.disk_share is None else f"{result.disk_share:.0%}",
                shown(result.p50_us, 0),
                shown(result.p99_us, 0),
                shown(result.resident_mib, 0),
            )
            for result in loads
        ]
        console.print(_table("broker CPU per delivered message, medians", columns, rows))
        for name in dict.fromkeys(result.scenario for result in loads):
            console.print(f"{name:6} {SCENARIOS[name].says}", highlight=False)
    for scenario, title, figures in OTHERS:
        found = [result for result in results if result.scenario == scenario]
        if found:
            rows = [
                (
                    each.broker,
                    *(shown(getattr(each, field), places) for _, field, places in figures),
                )
                for each in found
            ]
            columns = ("broker", *(name for name, _, _ in figures))
            console.print(_table(title, columns, rows))


_RESTARTED = (
    ("messages", "messages", 0),
    ("stop s", "stop_seconds", 2),
    ("start s", "start_seconds", 2),
    ("start CPU s", "start_cpu_seconds", 2),
    ("MiB", "resident_mib", 0),
)
_STARTED = (
    ("start s", "start_seconds", 2),
    ("start CPU s", "start_cpu_seconds", 2),
    ("MiB", "resident_mib", 1),
    ("stop s", "stop_seconds", 2),
)
_OPENED = (
    ("connections", "messages", 0),
    ("us", "us_per_message", 0),
    ("a second", "messages_per_second", 0),
)
OTHERS = (
    (START, "start and stop without data", _STARTED),
    (START_HTTP, "starthttp: the same with the HTTP API", _STARTED),
    (
        IDLE,
        "at rest",
        (
            ("start s", "start_seconds", 2),
            ("MiB at start", "resident_mib", 1),
            ("KiB/connection", "kib_per_connection", 1),
            ("KiB/queue", "kib_per_queue", 1),
        ),
    ),
    (OPENING_ALONE, "open0: connections without a channel, opened and closed", _OPENED),
    (OPENING, "open: connections with a channel, opened and closed one after the other", _OPENED),
    (OPENING_CONSUMER, "open9: the same with a consumer", _OPENED),
    (OPENING_LINK, "open10: connection, session and link of AMQP 1.0", _OPENED),
    (
        TOPICS,
        "topics: a topic exchange with many bindings, and messages that match one",
        (
            ("messages", "messages", 0),
            ("us/msg", "us_per_message", 2),
            ("KiB/binding", "kib_per_binding", 2),
        ),
    ),
    (
        FAN_IN,
        "i100: 100 connections into one durable queue, 20 unconfirmed each",
        (
            ("messages", "messages", 0),
            ("us/msg", "us_per_message", 2),
            ("msg/s", "messages_per_second", 0),
        ),
    ),
    (
        HEARTBEATS,
        "h10k: connections with a heartbeat of 10 s",
        (
            ("connections", "messages", 0),
            ("of a core", "cpu_share", 4),
            ("KiB/connection", "kib_per_connection", 1),
        ),
    ),
    (
        BACKLOG,
        "f: messages of 1 KiB, persistent, into a durable queue, then out",
        (
            ("messages", "messages", 0),
            ("us in", "us_in", 2),
            ("us out", "us_out", 2),
            ("msg/s in", "messages_per_second", 0),
            ("MiB full", "resident_mib", 0),
            ("most MiB", "peak_mib", 0),
        ),
    ),
    (
        SELECTING,
        "sel: a selector on three headers that selects one message of a hundred",
        (
            ("messages", "messages", 0),
            ("us/looked at", "us_per_message", 3),
            ("looked at/s", "messages_per_second", 0),
        ),
    ),
    (RESTART, "restart with messages of 128 B", _RESTARTED),
    (RESTART_MORE, "restart5: five times as many messages of 128 B", _RESTARTED),
)

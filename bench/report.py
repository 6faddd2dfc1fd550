"""Medians over runs, and the table that people read."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from bench.measure import Result
from bench.scenarios import IDLE, SCENARIOS

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


def show(results: list[Result], console: Console) -> None:
    """Print medians as tables."""
    loads = [result for result in results if result.scenario != IDLE]
    if loads:
        table = Table(title="broker CPU per delivered message, medians")
        for name in ("scenario", "broker"):
            table.add_column(name, no_wrap=True)
        for name in ("us/msg", "msg/s", "p50 us", "p99 us", "MiB"):
            table.add_column(name, justify="right", no_wrap=True)
        for result in loads:
            table.add_row(
                result.scenario,
                result.broker,
                shown(result.us_per_message, 2),
                shown(result.messages_per_second, 0),
                shown(result.p50_us, 0),
                shown(result.p99_us, 0),
                shown(result.resident_mib, 0),
            )
        console.print(table)
        for name in dict.fromkeys(result.scenario for result in loads):
            console.print(f"{name:6} {SCENARIOS[name].says}", highlight=False)
    idle = [result for result in results if result.scenario == IDLE]
    if idle:
        table = Table(title="at rest")
        table.add_column("broker")
        for name in ("start s", "MiB at start", "KiB/connection", "KiB/queue"):
            table.add_column(name, justify="right", no_wrap=True)
        for result in idle:
            table.add_row(
                result.broker,
                shown(result.start_seconds, 2),
                shown(result.resident_mib, 1),
                shown(result.kib_per_connection, 1),
                shown(result.kib_per_queue, 1),
            )
        console.print(table)

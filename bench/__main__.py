"""`python -m bench`: measure Harebell beside the floor, and RabbitMQ where it is installed."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from rich.console import Console

from bench.backlog import backlog, restart
from bench.brokers import KINDS, Broker, Floor, Harebell, RabbitMQ, rabbitmq_is_installed
from bench.drawing import draw, figures_of
from bench.many import fan_in, heartbeats
from bench.measure import Result, play, rest, start_and_stop
from bench.opening import opening, topics
from bench.other_logs import Nats, Redis, Served, installed
from bench.other_logs import play as play_log
from bench.page import record, write_page
from bench.peer import BenchError
from bench.report import medians, show
from bench.scenarios import (
    BACKLOG,
    FAN_IN,
    HEARTBEATS,
    IDLE,
    OPENING,
    OPENING_ALONE,
    OPENING_LINK,
    OPENINGS,
    RESTART,
    RESTART_MORE,
    SCENARIOS,
    SELECTING,
    START,
    START_HTTP,
    TOPICS,
    Scenario,
)
from bench.selecting import selecting
from harebell.base import impl
from harebell.base.names import did_you_mean

EVERYTHING = (
    *SCENARIOS,
    *(START, START_HTTP, IDLE, *OPENINGS, TOPICS, FAN_IN, HEARTBEATS),
    *(BACKLOG, SELECTING, RESTART, RESTART_MORE),
)
MEASURED: dict[str, Callable[[], Broker]] = {
    **KINDS,
    **{kind.name: kind for kind in (Floor, Redis, Nats)},
}
"""Who is measured, by name. The floor and the logs that are no AMQP brokers play loads only."""
_CONNECTIONS_PER_MESSAGE = 100
"""`h10k` has a connection for so many of the messages that `f` has."""


def _names(value: str | None, known: tuple[str, ...], what: str) -> list[str]:
    if value is None:
        return list(known)
    names = [name.strip() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, "'")
            raise click.UsageError(f"there is no {what} '{name}': {hint}")
    return names


def _brokers(value: str | None) -> list[str]:
    if value is not None:
        return _names(value, tuple(MEASURED), "broker")
    if not rabbitmq_is_installed():
        click.echo("RabbitMQ is not installed here, so it is not measured.", err=True)
    absent = {kind.name for kind in (Redis, Nats)} - {kind.name for kind in installed()}
    if not rabbitmq_is_installed():
        absent.add(RabbitMQ.name)
    return [name for name in MEASURED if name not in absent]


def plays(broker: Broker, scenario: Scenario) -> bool:
    """Whether a broker plays a scenario."""
    if isinstance(broker, Served):
        return scenario.durable and scenario.confirms > 0
    if isinstance(broker, Floor) and scenario.apart:
        return False
    versions = {scenario.version, scenario.received_in or scenario.version}
    return versions == {"0-9-1"} or isinstance(broker, Harebell)


def opens(broker: Broker, scenario: str) -> bool:
    """Whether a broker plays one of OPENINGS."""
    if scenario == OPENING_LINK:
        return isinstance(broker, Harebell)
    return scenario in (OPENING_ALONE, OPENING) or not isinstance(broker, Floor)


def measure(
    brokers: dict[str, Broker],
    scenarios: list[str],
    runs: int,
    seconds: float,
    console: Console,
) -> list[Result]:
    """Every run, brokers taking turns so that a change of the machine's speed meets all of them.

    Raises:
        BenchError: a run does not count.
    """
    results = []
    loads = [name for name in scenarios if name in SCENARIOS]
    for run in range(runs):
        for name in loads:
            for broker in brokers.values():
                if not plays(broker, SCENARIOS[name]):
                    continue
                if isinstance(broker, Served):
                    result = play_log(broker, SCENARIOS[name], seconds)
                else:
                    result = play(broker, SCENARIOS[name], seconds)
                results.append(result)
                console.print(
                    f"{run + 1}/{runs} {name:6} {broker.name:9} "
                    f"{result.us_per_message:8.2f} us/msg "
                    f"{result.messages_per_second:11,.0f} msg/s",
                    highlight=False,
                )
    return results


def measure_starts(brokers: Iterable[Broker], scenarios: list[str]) -> list[Result]:
    """Starts and stops of brokers beside those that are measured otherwise."""
    results = []
    for broker in brokers:
        if START in scenarios and not isinstance(broker, Floor | Served):
            results.append(start_and_stop(START, type(broker)))
        if START_HTTP in scenarios and isinstance(broker, Harebell):
            results.append(start_and_stop(START_HTTP, lambda: Harebell(http=True)))
    return results


def measure_once(
    brokers: Iterable[Broker], scenarios: list[str], messages: int, seconds: float
) -> list[Result]:
    """What takes long or changes little, a single time.

    Raises:
        BenchError: a run does not count.
    """
    results = []
    for broker in brokers:
        if isinstance(broker, Served):
            continue
        openings = [name for name in OPENINGS if name in scenarios and opens(broker, name)]
        results += [opening(broker, name) for name in openings]
        if FAN_IN in scenarios:
            results.append(fan_in(broker, seconds))
        if isinstance(broker, Floor):
            continue
        if HEARTBEATS in scenarios:
            connections = max(1, messages // _CONNECTIONS_PER_MESSAGE)
            results.append(heartbeats(broker, connections, 20 * seconds))
        if TOPICS in scenarios:
            results.append(topics(broker, max(1, messages // 10)))
        if BACKLOG in scenarios:
            results.append(backlog(broker, messages))
        if SELECTING in scenarios and isinstance(broker, Harebell):
            results.append(selecting(broker, messages))
        if RESTART in scenarios and isinstance(broker, Harebell):
            results.append(restart(broker, RESTART, messages))
        if RESTART_MORE in scenarios and isinstance(broker, Harebell):
            results.append(restart(broker, RESTART_MORE, 5 * messages))
    return results


@click.command()
@click.option("--only", metavar="NAMES", help="Scenarios, with commas: " + ", ".join(EVERYTHING))
@click.option("--brokers", "kinds", metavar="NAMES", help="Brokers: " + ", ".join(MEASURED))
@click.option("--runs", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option("--seconds", type=click.FloatRange(0.1, 600), default=1.5, show_default=True)
@click.option("--messages", type=click.IntRange(1), default=1_000_000, show_default=True)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--record", "keep", is_flag=True, help="Put the medians into the documentation.")
@click.option("--svg", "picture", type=click.Path(dir_okay=False, path_type=Path))
def main(
    only: str | None,
    kinds: str | None,
    runs: int,
    seconds: float,
    messages: int,
    json_file: Path | None,
    keep: bool,
    picture: Path | None,
) -> None:
    """Measure brokers; ends with code 1 when a message was lost, doubled or out of order."""
    scenarios = _names(only, EVERYTHING, "scenario")
    console = Console(soft_wrap=False)
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        brokers: dict[str, Broker] = {}
        try:
            for name in _brokers(kinds):
                broker = MEASURED[name]()
                stack.callback(broker.stop)
                brokers[name] = broker
            # First: memory that a load has left behind would hide what a connection takes.
            results = measure_starts(brokers.values(), scenarios)
            results += [
                rest(each)
                for each in brokers.values()
                if IDLE in scenarios and not isinstance(each, Floor | Served)
            ]
            results += measure(brokers, scenarios, runs, seconds, console)
            results += measure_once(brokers.values(), scenarios, messages, seconds)
        except (BenchError, RuntimeError) as error:
            click.echo(f"failed: {error}", err=True)
            sys.exit(1)
    found = medians(results)
    show(found, console)
    console.print(
        f"{runs} runs of {seconds:g} s, harebell {impl.chosen()}, {os.cpu_count()} cores, "
        f"{time.monotonic() - begin:.0f} s in all; nothing was lost, doubled or out of order",
        highlight=False,
    )
    if json_file is not None:
        report = {"medians": found, "runs": results}
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    if keep:
        record(found, datetime.now(UTC).date().isoformat())
        write_page()
    drawn = figures_of(found)
    if picture is not None and drawn:
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_text(draw(drawn))
        console.print(f"drawn in {picture}", highlight=False)


if __name__ == "__main__":
    main()

"""`python -m bench`: measure Harebell, and RabbitMQ beside it where it is installed."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from rich.console import Console

from bench.backlog import backlog, restart
from bench.brokers import KINDS, Broker, Harebell, rabbitmq_is_installed
from bench.drawing import draw, figures_of
from bench.measure import Result, play, rest
from bench.opening import opening, topics
from bench.page import record, write_page
from bench.peer import BenchError
from bench.report import medians, show
from bench.scenarios import BACKLOG, IDLE, OPENING, RESTART, RESTART_MORE, SCENARIOS, TOPICS
from harebell.base import impl
from harebell.base.names import did_you_mean

EVERYTHING = (*SCENARIOS, IDLE, OPENING, TOPICS, BACKLOG, RESTART, RESTART_MORE)


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
        return _names(value, tuple(KINDS), "broker")
    if rabbitmq_is_installed():
        return list(KINDS)
    click.echo("RabbitMQ is not installed here, so Harebell is measured alone.", err=True)
    return ["harebell"]


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
                if SCENARIOS[name].version != "0-9-1" and not isinstance(broker, Harebell):
                    continue
                result = play(broker, SCENARIOS[name], seconds)
                results.append(result)
                console.print(
                    f"{run + 1}/{runs} {name:6} {broker.name:9} "
                    f"{result.us_per_message:8.2f} us/msg "
                    f"{result.messages_per_second:11,.0f} msg/s",
                    highlight=False,
                )
    return results


def measure_once(brokers: dict[str, Broker], scenarios: list[str], messages: int) -> list[Result]:
    """What takes long or changes little, a single time.

    Raises:
        BenchError: a run does not count.
    """
    results = []
    for broker in brokers.values():
        if OPENING in scenarios:
            results.append(opening(broker))
        if TOPICS in scenarios:
            results.append(topics(broker, max(1, messages // 10)))
        if BACKLOG in scenarios:
            results.append(backlog(broker, messages))
        if RESTART in scenarios and isinstance(broker, Harebell):
            results.append(restart(broker, RESTART, messages))
        if RESTART_MORE in scenarios and isinstance(broker, Harebell):
            results.append(restart(broker, RESTART_MORE, 5 * messages))
    return results


@click.command()
@click.option("--only", metavar="NAMES", help="Scenarios, with commas: " + ", ".join(EVERYTHING))
@click.option("--brokers", "kinds", metavar="NAMES", help="Brokers: " + ", ".join(KINDS))
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
                broker = KINDS[name]()
                stack.callback(broker.stop)
                brokers[name] = broker
            # First: memory that a load has left behind would hide what a connection takes.
            results = [rest(each) for each in brokers.values() if IDLE in scenarios]
            results += measure(brokers, scenarios, runs, seconds, console)
            results += measure_once(brokers, scenarios, messages)
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

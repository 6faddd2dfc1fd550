"""`python -m bench.fairness`: what one busy user costs all others.

A healthy pair publishes and consumes 1,000 messages per second beside one hostile load at a time,
which belongs to another user: `bench.hostile` has them. The pair's latency is printed for Harebell,
and beside it for RabbitMQ where it is installed, each load with a broker that was just started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from bench import pair
from bench.brokers import KINDS, Harebell, RabbitMQ, rabbitmq_is_installed
from bench.hostile import side
from bench.hostile.loads import IDLE, LOADS
from bench.peer import BenchError
from bench.report import shown
from harebell.base import impl
from harebell.base.names import did_you_mean
from harebell.management.control.client import ControlError, ask_overview

P99_MS = 20.0
WORST_MS = 100.0
_PREPARE_SECONDS = 600.0
_GRACE_SECONDS = 120.0
_LEAD_SECONDS = 0.5


class Row(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How the pair fared beside one load on one broker.

    Args:
        load: what was played.
        broker: who was measured.
        p50_ms: half of the pair's messages took at most that long.
        p99_ms: 99 of 100 took at most that long.
        worst_ms: the longest.
        own_ms: the most by which the pair's own process was late.
        messages: how many the pair sent.
        lost: how many of them did not arrive in time.
        turn_ms: the longest turn of the broker's loop, where it tells.
        busy_ms: the most CPU time of that loop between two looks, which are 5 ms apart.
        asked: how often the load has written or asked.
        error: why there are no figures.
    """

    load: str
    broker: str
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    worst_ms: float = 0.0
    own_ms: float = 0.0
    messages: int = 0
    lost: int = 0
    turn_ms: float | None = None
    busy_ms: float | None = None
    asked: int = 0
    error: str = ""


class Bars(msgspec.Struct, frozen=True):
    """What the pair may see at most.

    Args:
        p99_ms: of 99 of 100 messages.
        worst_ms: of every message.
    """

    p99_ms: float = P99_MS
    worst_ms: float = WORST_MS


def missed(rows: Iterable[Row], bars: Bars) -> list[str]:
    """One sentence for every bar that Harebell missed; other brokers are not judged."""
    complaints = []
    for row in rows:
        if row.broker != Harebell.name:
            continue
        if row.error:
            complaints.append(f"{row.load}: {row.error}")
        if row.lost:
            complaints.append(f"{row.load}: {row.lost} of {row.messages} messages did not arrive")
        if row.p99_ms > bars.p99_ms:
            complaints.append(f"{row.load}: p99 is {row.p99_ms:.1f} ms, over {bars.p99_ms:g} ms")
        if row.worst_ms > bars.worst_ms:
            complaints.append(
                f"{row.load}: the worst is {row.worst_ms:.1f} ms, over {bars.worst_ms:g} ms"
            )
    return complaints


def _definitions(directory: Path) -> Path:
    """Users of which none is the other; the password of each is its name."""
    path = directory / "definitions.json"
    names = ("guest", pair.USER, side.USER)
    document = {
        "users": [{"name": name, "password": name, "tags": "administrator"} for name in names],
        "vhosts": [{"name": "/"}],
        "permissions": [
            {"user": name, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
            for name in names
        ],
    }
    path.write_text(json.dumps(document))
    return path


@contextmanager
def _process(module: str, task: msgspec.Struct) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready to begin, and ends with the block."""
    made = subprocess.Popen(
        [sys.executable, "-m", module, msgspec.json.encode(task).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield made
    finally:
        if made.poll() is None:
            made.kill()
        made.communicate()


def _line(process: subprocess.Popen[str], seconds: float) -> str:
    """The next line of a process; nothing when it ends without one."""
    assert process.stdout is not None
    # The processes bound what they do themselves; this is for one that hangs.
    timer = subprocess.Popen(
        ["sh", "-c", f"sleep {seconds}; kill -9 {process.pid} 2>/dev/null"],
        start_new_session=True,
    )
    try:
        return process.stdout.readline()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(timer.pid, 9)
        timer.wait()


def _await_ready(process: subprocess.Popen[str]) -> None:
    line = _line(process, _PREPARE_SECONDS).strip()
    if line != "ready":
        raise BenchError(_error(line))


def _error(line: str) -> str:
    with suppress(json.JSONDecodeError):
        return str(json.loads(line)["error"])
    return line or "it ended without output"


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def _report(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    line = _line(process, seconds)
    try:
        report: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        raise BenchError(_error(line)) from None
    if "error" in report:
        raise BenchError(str(report["error"]))
    return report


class _Watch(threading.Thread):
    """Asks a Harebell how long its longest turn is while a load is played."""

    def __init__(self, broker: Any, seconds: float) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self._seconds = seconds
        self.turn_ms: float | None = None
        self.busy_ms: float | None = None

    def run(self) -> None:
        """Ask; the answer comes when the time is over."""
        if not isinstance(self._broker, Harebell):
            return
        with suppress(ControlError):
            overview = ask_overview(self._broker.data_dir, _GRACE_SECONDS, self._seconds)
            self.turn_ms = float(overview["event_loop_lag_seconds"]) * 1000
            self.busy_ms = float(overview["event_loop_busy_seconds"]) * 1000


def measure(load: str, kind: str, task: pair.Task, scale: float) -> Row:
    """Play one load beside the pair on a broker of its own.

    Args:
        load: its name.
        kind: which broker.
        task: what the pair does; the port is the broker's.
        scale: what the numbers of the load are multiplied by.
    """
    with tempfile.TemporaryDirectory(prefix="harebell-bench-") as directory:
        definitions = _definitions(Path(directory))
        broker = (
            RabbitMQ(definitions) if kind == RabbitMQ.name else Harebell(definitions, http=True)
        )
        try:
            return _measured(broker, load, task, scale)
        except (BenchError, OSError) as error:
            return Row(load=load, broker=kind, error=str(error))
        finally:
            broker.stop()


def _measured(broker: Any, load: str, task: pair.Task, scale: float) -> Row:
    task = msgspec.structs.replace(task, port=broker.port)
    data_dir, http_port = "", 0
    if isinstance(broker, Harebell):
        data_dir, http_port = str(broker.data_dir), broker.http_port
    hostile = side.Task(load, broker.port, task.seconds, scale, data_dir, http_port)
    watch = _Watch(broker, task.seconds + _LEAD_SECONDS)
    with _process("bench.hostile", hostile) as other:
        _await_ready(other)
        with _process("bench.pair", task) as healthy:
            _await_ready(healthy)
            watch.start()
            _go(healthy)
            time.sleep(_LEAD_SECONDS)
            _go(other)
            report = _report(healthy, task.seconds + task.grace + _GRACE_SECONDS)
        watch.join(_GRACE_SECONDS)
        asked = _report(other, _GRACE_SECONDS)["done"]
    figures = {"turn_ms": watch.turn_ms, "busy_ms": watch.busy_ms, "asked": asked, **report}
    return Row(load=load, broker=broker.name, **figures)


def _names(value: str | None, known: Iterable[str], what: str) -> list[str]:
    names = [name.strip() for name in (value or "").split(",") if name.strip()]
    known = list(known)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, "'")
            raise click.UsageError(f"there is no {what} '{name}': {hint}")
    return names


def show(rows: list[Row], bars: Bars, console: Console) -> None:
    """Print the pair's latency beside every load; what is over a bar stands out."""
    kinds = list(dict.fromkeys(row.broker for row in rows))
    table = Table(title="the pair's latency in ms beside one load")
    table.add_column("load", no_wrap=True)
    for kind in kinds:
        for figure in ("p50", "p99", "worst"):
            table.add_column(f"{kind}\n{figure}", justify="right", no_wrap=True)
    for figure in ("turn", "CPU"):
        table.add_column(f"longest\n{figure}", justify="right", no_wrap=True)
    for load in dict.fromkeys(row.load for row in rows):
        found = {row.broker: row for row in rows if row.load == load}
        cells = [load]
        for kind in kinds:
            cells += _cells(found.get(kind), bars, judged=kind == Harebell.name)
        own = found.get(Harebell.name)
        turn, busy = (own.turn_ms, own.busy_ms) if own else (None, None)
        table.add_row(*cells, shown(turn, 1), shown(busy, 1))
    console.print(table)
    for load in dict.fromkeys(row.load for row in rows):
        console.print(f"{load:20} {LOADS[load].says}", highlight=False)
    for row in rows:
        if row.error and row.broker != Harebell.name:
            console.print(f"{row.broker}: {row.load}: {row.error}", highlight=False)


def _cells(row: Row | None, bars: Bars, *, judged: bool) -> tuple[str, str, str]:
    if row is None:
        return "-", "-", "-"
    if row.error:
        return "failed", "", ""
    p99, worst = shown(row.p99_ms, 1), shown(row.worst_ms, 1)
    if judged and row.p99_ms > bars.p99_ms:
        p99 = f"[bold red]{p99}![/]"
    if judged and (row.worst_ms > bars.worst_ms or row.lost):
        worst = f"[bold red]{worst}![/]"
    return shown(row.p50_ms, 1), p99, worst


def _played(
    loads: list[str], kinds: list[str], task: pair.Task, scale: float, console: Console
) -> list[Row]:
    """Every load on every broker that can be asked for it."""
    rows = []
    for load in loads:
        for kind in kinds:
            if kind != Harebell.name and not LOADS[load].everywhere:
                continue
            row = measure(load, kind, task, scale)
            rows.append(row)
            console.print(
                f"{load:20} {kind:9} {row.error}"
                if row.error
                else f"{load:20} {kind:9} p50 {row.p50_ms:8.1f}  p99 {row.p99_ms:9.1f}  "
                f"worst {row.worst_ms:9.1f}  turn {shown(row.turn_ms, 1):>9}  "
                f"CPU {shown(row.busy_ms, 1):>9}  own {row.own_ms:6.1f} ms",
                highlight=False,
                soft_wrap=True,
            )
    return rows


@click.command()
@click.option("--loads", metavar="NAMES", help="Loads, with commas: " + ", ".join(LOADS))
@click.option("--brokers", "kinds", metavar="NAMES", help="Brokers: " + ", ".join(KINDS))
@click.option("--seconds", type=click.FloatRange(0.5, 600), default=4.0, show_default=True)
@click.option("--rate", type=click.IntRange(1, 10_000), default=1_000, show_default=True)
@click.option("--scale", type=click.FloatRange(0.0001, 10), default=1.0, show_default=True)
@click.option("--confirms", is_flag=True, help="The pair's messages are persistent and confirmed.")
@click.option("--p99", type=float, default=P99_MS, show_default=True, help="Bar in ms.")
@click.option("--worst", type=float, default=WORST_MS, show_default=True, help="Bar in ms.")
@click.option("--check", is_flag=True, help="End with code 1 when Harebell misses a bar.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(
    loads: str | None,
    kinds: str | None,
    seconds: float,
    rate: int,
    scale: float,
    confirms: bool,
    p99: float,
    worst: float,
    check: bool,
    json_file: Path | None,
) -> None:
    """Measure what one busy user costs a healthy publisher and its consumer."""
    usual = [IDLE, *(name for name, kind in LOADS.items() if kind.chosen and name != IDLE)]
    chosen = _names(loads, LOADS, "load") or usual
    brokers = _names(kinds, KINDS, "broker")
    if not brokers:
        brokers = list(KINDS) if rabbitmq_is_installed() else [Harebell.name]
    console, bars = Console(soft_wrap=False), Bars(p99, worst)
    begin = time.monotonic()
    task = pair.Task(0, seconds, rate, confirms)
    rows = _played(chosen, brokers, task, scale, console)
    show(rows, bars, console)
    complaints = missed(rows, bars)
    for each in complaints:
        console.print(f"missed: {each}", highlight=False)
    console.print(
        f"{len(chosen)} loads of {seconds:g} s, harebell {impl.chosen()}, {os.cpu_count()} cores, "
        f"{time.monotonic() - begin:.0f} s in all; bars: p99 {p99:g} ms, worst {worst:g} ms",
        highlight=False,
    )
    if json_file is not None:
        report = {"bars": bars, "rows": rows, "missed": complaints}
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    if check and complaints:
        sys.exit(1)


if __name__ == "__main__":
    main()

"""`python -m bench.workers`: two busy vhosts, with one worker and with two.

Each vhost has a producer and a consumer. The rate is that of both vhosts together. Beside it is the
CPU time that the busiest process needs per message: its inverse is the rate that the broker could
reach with a core for each process, whatever else the machine has to do.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import click
from msgspec.structs import replace

from bench.measure import Result, play
from bench.peer import BenchError
from bench.process import cpu_seconds
from bench.scenarios import Scenario
from harebell.management.control.client import ask_command, ask_overview
from harebell.testing.running import RunningBroker

SCENARIO = Scenario(name="workers", says="a busy vhost", prefetch=1_000)
VHOSTS = ("/", "far")
_SECONDS = 5.0
_RIGHTS = {"user": "guest", "configure": ".*", "write": ".*", "read": ".*"}


class _Process(NamedTuple):
    """The process of a store, as `play` has a broker."""

    name: str
    port: int
    pid: int


class Row(NamedTuple):
    """What came of a run.

    Args:
        workers: how many there were.
        rate: messages per second in both vhosts.
        busiest_us: CPU microseconds of the busiest process per message of both vhosts.
    """

    workers: int
    rate: float
    busiest_us: float


def measured(workers: int, seconds: float) -> Row:
    """Play the scenario in both vhosts at the same time.

    Raises:
        BenchError: something was lost, doubled, out of order, or took too long.
    """
    flags = ("--workers", str(workers)) if workers > 1 else ()
    with RunningBroker(*flags) as broker:
        ask_command(broker.data_dir, "vhosts.add", {"name": VHOSTS[1], "store": workers})
        ask_command(broker.data_dir, "permissions.set", {**_RIGHTS, "vhost": VHOSTS[1]})
        homes = [broker.data_dir, *sorted(broker.data_dir.glob("stores/[0-9]*"))]
        processes = [
            _Process(f"worker {number}", broker.port, int(ask_overview(home)["pid"]))
            for number, home in enumerate(homes, start=1)
        ]
        before = [cpu_seconds(each.pid) for each in processes]
        results: list[Result] = []
        failures: list[Exception] = []

        def run(vhost: str) -> None:
            try:
                # The rate and the messages count; the CPU time is measured here.
                scenario = replace(SCENARIO, vhost=vhost)
                results.append(play(processes[0], scenario, seconds))  # type: ignore[arg-type]
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(vhost,), daemon=True) for vhost in VHOSTS]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        if failures:
            raise BenchError(str(failures[0]))
        used = [
            cpu_seconds(each.pid) - began for each, began in zip(processes, before, strict=True)
        ]
    messages = sum(each.messages or 0 for each in results)
    rate = sum(each.messages_per_second or 0.0 for each in results)
    return Row(workers, rate, max(used) / messages * 1e6)


@click.command()
@click.option("--seconds", default=_SECONDS, show_default=True, help="How long each run sends.")
def main(seconds: float) -> None:
    """Measure two busy vhosts with one worker and with two."""
    one, two = (measured(workers, seconds) for workers in (1, 2))
    for row in (one, two):
        click.echo(
            f"{row.workers} worker{'s' if row.workers > 1 else ' '}  {row.rate:>10,.0f} messages/s"
            f"  {row.busiest_us:6.2f} us of the busiest process per message"
        )
    click.echo(f"the busiest process has {one.busiest_us / two.busiest_us:.2f} times less to do")


if __name__ == "__main__":
    main()

"""`python -m bench.workers`: two busy vhosts, with one worker and with two.

A producer in each vhost publishes with confirms to an exchange that leads to many short queues. So
the broker has most of the work, and two cores are enough to see what a second worker brings. Beside
the rate is the CPU time that the busiest process needs per message. It says the same on a machine
that has other work to do: its inverse is the rate with a core for each process.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import NamedTuple

import click
import msgspec

from bench.frames import Frames
from bench.peer import BenchError, Peer
from bench.process import cpu_seconds
from harebell.management.control.client import ask_command, ask_overview
from harebell.testing.running import RunningBroker
from harebell.wire.v09 import methods as m

VHOSTS = ("/", "far")
QUEUES = 20
"""Queues that each message goes to; they keep the last one."""
_SECONDS = 5.0
_GRACE_SECONDS = 60.0
_SIZE = 128
_BATCH = 100
_WINDOW = 2_000
_EXCHANGE = "bench.workers"
_RIGHTS = {"user": "guest", "configure": ".*", "write": ".*", "read": ".*"}


class Job(msgspec.Struct, frozen=True):
    """What a producer has to do.

    Args:
        port: where the broker listens.
        vhost: what it opens.
        seconds: how long it sends.
    """

    port: int
    vhost: str
    seconds: float


class Sent(msgspec.Struct, frozen=True):
    """What a producer has done.

    Args:
        messages: how many were confirmed.
        seconds: from the first to the last confirm.
    """

    messages: int
    seconds: float


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


def produce(job: Job) -> Sent:
    """Publish as fast as it goes."""
    peer = Peer(job.port, lambda *_: None, vhost=job.vhost)
    peer.call(m.ExchangeDeclare(_EXCHANGE, "fanout"), m.ExchangeDeclareOk)
    for number in range(QUEUES):
        name = f"{_EXCHANGE}.{number}"
        peer.call(m.QueueDeclare(name, arguments={"x-max-length": 1}), m.QueueDeclareOk)
        peer.call(m.QueueBind(name, _EXCHANGE), m.QueueBindOk)
    peer.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    frames = Frames(_EXCHANGE, "", _SIZE, persistent=False, batch=_BATCH)
    number, began = 0, time.monotonic()
    while not number or time.monotonic() < began + job.seconds:
        peer.socket.sendall(frames.numbered(number, time.monotonic_ns(), _BATCH))
        number += _BATCH
        while number - peer.confirmed > _WINDOW:
            peer.read()
    while peer.confirmed < number:
        peer.read()
    sent = Sent(number, time.monotonic() - began)
    peer.close()
    return sent


def measured(workers: int, seconds: float) -> Row:
    """Play it in both vhosts at the same time.

    Raises:
        BenchError: a producer has failed.
    """
    flags = ("--workers", str(workers)) if workers > 1 else ()
    with RunningBroker(*flags) as broker:
        place = {"store": workers} if workers > 1 else {}
        ask_command(broker.data_dir, "vhosts.add", {"name": VHOSTS[1], **place})
        ask_command(broker.data_dir, "permissions.set", {**_RIGHTS, "vhost": VHOSTS[1]})
        homes = [broker.data_dir, *sorted(broker.data_dir.glob("stores/[0-9]*"))]
        pids = [int(ask_overview(home)["pid"]) for home in homes]
        before = [cpu_seconds(each) for each in pids]
        sent = _play(broker.port, seconds)
        after = [cpu_seconds(each) for each in pids]
    messages = sum(each.messages for each in sent)
    used = [end - begin for begin, end in zip(before, after, strict=True)]
    rate = sum(each.messages / each.seconds for each in sent)
    return Row(workers, rate, max(used) / messages * 1e6)


def _play(port: int, seconds: float) -> list[Sent]:
    """Run a producer in each vhost."""
    producers = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "bench.workers", "--produce"),
                msgspec.json.encode(Job(port, vhost, seconds)).decode(),
            ],
            stdout=subprocess.PIPE,
        )
        for vhost in VHOSTS
    ]
    try:
        outputs = [each.communicate(timeout=seconds + _GRACE_SECONDS)[0] for each in producers]
    finally:
        for each in producers:
            each.kill()
            each.wait()
    if any(each.returncode for each in producers):
        raise BenchError("a producer has failed: see above")
    return [msgspec.json.decode(output, type=Sent) for output in outputs]


@click.command()
@click.option("--seconds", default=_SECONDS, show_default=True, help="How long each run sends.")
@click.option("--produce", "job", hidden=True)
def main(seconds: float, job: str | None) -> None:
    """Measure two busy vhosts with one worker and with two."""
    if job is not None:
        click.echo(msgspec.json.encode(produce(msgspec.json.decode(job, type=Job))))
        return
    one, two = (measured(workers, seconds) for workers in (1, 2))
    for row in (one, two):
        click.echo(
            f"{row.workers} worker{'s' if row.workers > 1 else ' '}  {row.rate:>10,.0f} messages/s"
            f"  {row.busiest_us:6.2f} us of the busiest process per message"
        )
    click.echo(
        f"two workers: {two.rate / one.rate:.2f} times the messages; the busiest process has "
        f"{one.busiest_us / two.busiest_us:.2f} times less to do"
    )


if __name__ == "__main__":
    main()

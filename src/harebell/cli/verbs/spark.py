"""`harebell spark`: check the installation of Spark, make it start faster, keep it running."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from harebell.base.finding import Finding
from harebell.cli.broker_options import takes_broker
from harebell.cli.findings import print_findings
from harebell.cli.formats import takes_json
from harebell.cli.limits import SPARK_SERVER_IDLE_SECONDS
from harebell.cli.nouns import NounGroup, RunningBroker
from harebell.cli.progress import Progress
from harebell.cli.verb import Failure, echo
from harebell.cli.which_broker import amqp_url
from harebell.client.blocking import connect
from harebell.client.errors import AMQPError
from harebell.client.url import URL
from harebell.spark.runtime.java import SessionError

_JSON = takes_json("One line of JSON instead of text.")


@click.group(cls=NounGroup)
def spark() -> None:
    """See whether Spark can run here, make it start faster, and keep a session running."""


def _needs_spark(call: Callable[[], Any]) -> Any:
    """Call a function; convert errors of the installation to one sentence."""
    try:
        return call()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("pyspark", "pyarrow"):
            raise
        text = f"{error.name} is not installed: pip install 'harebell[spark]'"
        raise Failure(text) from None
    except (SessionError, OSError) as error:
        raise Failure(str(error)) from None


@spark.command()
@click.option("--master", metavar="URL", help="Where Spark is to run: spark://HOST:PORT, yarn ...")
@click.option("--start", is_flag=True, help="Also start a session and look into an executor.")
@click.option(
    "--checkpoint",
    metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Say what the query of this checkpoint will do with each queue when it starts again.",
)
@takes_broker
@_JSON
def doctor(
    master: str | None,
    start: bool,
    checkpoint: Path | None,
    data_dir: str | None,
    config_file: str | None,
    as_json: bool,
) -> None:
    """Look at everything that Spark needs; the exit code is 1 when something does not work.

    With --checkpoint it looks at the queues of a query instead, and changes nothing: each goes on,
    comes again or has lost something. `harebell doctor` looks at the machine, the broker and Spark.
    """
    if checkpoint is not None:
        print_findings(
            _foreseen(checkpoint, RunningBroker(data_dir, config_file, as_json)), as_json=as_json
        )
        return
    from harebell.spark.runtime.doctor import examine

    with Progress("looking at Spark"):
        needs_spark = _needs_spark(lambda: list(examine(master, start=start)))
    print_findings(needs_spark, as_json=as_json)


def _foreseen(checkpoint: Path, broker: RunningBroker) -> list[Finding]:
    """Return what the query of a checkpoint will do.

    Raises:
        Failure: the checkpoint cannot be read, or the broker refuses.
    """
    from harebell.spark.runtime.restart import foresee

    target = URL.of(amqp_url(None), None)

    def group_of(queue: str, group: str) -> Any:
        given = {"queue": queue, "vhost": target.vhost}
        known = broker.ask("leases.list", given)
        if group not in [each["group"] for each in known]:
            return None
        return broker.ask("leases.show", given | {"group": group})

    try:
        with Progress("looking at the queues"), connect(target) as connection:
            return list(foresee(checkpoint, connection, group_of))
    except (AMQPError, OSError) as error:
        raise Failure(str(error)) from None


@spark.command()
@click.option("--again", is_flag=True, help="Make the archive anew, although there is one.")
@_JSON
def warm(again: bool, as_json: bool) -> None:
    """Make the class-data archive that lets sessions start in half the time."""

    def make() -> Any:
        from harebell.spark.runtime.warming import warm as make_archive

        return make_archive(rebuild=again)

    begun = time.monotonic()
    with Progress("making the archive"):
        archive, made = _needs_spark(make)
    seconds = time.monotonic() - begun
    if as_json:
        click.echo(
            json.dumps({"archive": str(archive), "made": made, "seconds": round(seconds, 1)})
        )
    elif made:
        click.echo(f"made {archive} in {seconds:.0f} s")
    else:
        click.echo(f"{archive} is there already")


@spark.command()
@click.option("--master", metavar="URL", help="Where its tasks run.  [default: this machine]")
@click.option(
    "--idle",
    type=click.FloatRange(min=1),
    default=SPARK_SERVER_IDLE_SECONDS,
    metavar="SECONDS",
    help=f"Without a statement for so long it ends.  [default: {SPARK_SERVER_IDLE_SECONDS:g}]",
)
@_JSON
def start(master: str | None, idle: float, as_json: bool) -> None:
    """Start a Spark server that `harebell sql` uses, so that no statement waits for a JVM."""
    from harebell.spark.runtime.session_server import start_server

    begun = time.monotonic()
    with Progress("starting the Spark server"):
        server, fresh = _needs_spark(lambda: start_server(idle, master))
    if as_json:
        echo(json.dumps(_described(server) | {"started_now": fresh}))
        return
    verb = f"started in {time.monotonic() - begun:.1f} s" if fresh else "runs already"
    echo(f"Spark server {verb}: {server.url}, process {server.pid}")


@spark.command()
@_JSON
def status(as_json: bool) -> None:
    """Print the Spark server of this user; fails if there is none."""
    from harebell.spark.runtime.session_server import find_server

    server = _needs_spark(find_server)
    if server is None:
        raise Failure("no Spark server runs: `harebell spark start` starts one")
    if as_json:
        echo(json.dumps(_described(server)))
        return
    for name, value in _described(server).items():
        echo(f"{name}: {value}")


@spark.command()
def stop() -> None:
    """Stop the Spark server of this user, with everything that it runs."""
    from harebell.spark.runtime.session_server import stop_server

    with Progress("stopping the Spark server"):
        server = _needs_spark(stop_server)
    if server is None:
        raise Failure("no Spark server runs")
    echo(f"Spark server, process {server.pid}, has ended")


def _described(server: Any) -> dict[str, Any]:
    """Return what may be printed of a server: everything but its token."""
    return {
        "url": server.url,
        "pid": server.pid,
        "started": time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(server.started)),
        "idle_seconds": server.idle_seconds,
        "master": server.master,
        **{name: server.versions[name] for name in ("harebell", "pyspark", "python")},
        "differs": server.differences,
    }

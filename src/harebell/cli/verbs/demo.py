"""`harebell demo`: real data through a broker of its own, live on the web page, and an answer."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from harebell.admin.findings import counted, verdict
from harebell.cli.demo.flights import AIRPORTS, flights
from harebell.cli.demo.picture import Hours, picture
from harebell.cli.demo.traffic import EXCHANGE, LATE, STREAM, Sums, Traffic, declare
from harebell.cli.limits import BAD_DAY_LOOK_SECONDS, BAD_DAY_SECONDS, DEMO_SECONDS
from harebell.cli.verb import Failure, Verb, echo
from harebell.client.blocking import connect
from harebell.client.errors import AMQPError
from harebell.management.control.client import ask_command
from harebell.server.limits import MANAGEMENT_PORT
from harebell.testing import RunningBroker
from harebell.testing.running import DidNotStart

PICTURE = "harebell-demo.svg"
_TITLE = "Mean delay of departures from New York, January 2013"
_AMQP_PORT = 5672
_STATISTICS_MS = 1000
_LONG_SECONDS = 3600


@click.command(cls=Verb)
@click.option(
    "--picture",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=PICTURE,
    metavar="FILE",
    help=f"Where the picture is written.  [default: {PICTURE}]",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=None,
    metavar="SECONDS",
    help=f"How long the publisher takes.  [default: {DEMO_SECONDS:g} on a terminal, else 0]",
)
@click.option(
    "--spark/--no-spark",
    "with_spark",
    default=None,
    help="Also ask Spark.  [default: if Java and pyspark are there]",
)
@click.option(
    "--stay/--no-stay",
    default=None,
    help="Keep the broker until Ctrl-C.  [default: stay on a terminal]",
)
@click.option(
    "--bad-day", is_flag=True, help="Plant twelve problems instead, and show that all are found."
)
def demo(
    path: Path,
    seconds: float | None,
    with_spark: bool | None,
    stay: bool | None,
    bad_day: bool,
) -> None:
    """Send a month of flights through a broker, and draw what they say.

    27,004 departures from New York are published with confirms to a topic exchange, which routes
    them to queues of three airports and a stream. Consumers add up the delays, Spark does so too
    where it is installed, and the answer is a picture. The broker's data is removed at the end.

    With --bad-day twelve things go wrong: queues without consumers, messages that loop, a
    certificate that has expired. Within a minute the first page says which.
    """
    watched = sys.stdout.isatty()
    stays = watched if stay is None else stay
    if not bad_day:
        _check_writable(path)
    try:
        if bad_day:
            _have_a_bad_day(stays)
            return
        with _broker() as (broker, page):
            _run(broker.url, page, path, DEMO_SECONDS if watched else 0.0, seconds, with_spark)
            if stays:
                _stay(page)
    except DidNotStart as error:
        raise Failure(str(error)) from None
    except AMQPError as error:
        raise Failure(f"the demo's broker does not do what is asked of it: {error}") from None


def _have_a_bad_day(stays: bool) -> None:
    """Plant problems, and compare what the broker finds with them.

    Raises:
        Failure: it finds less, or more.
    """
    from harebell.cli.demo.bad_day import PLANTED, BadDay, flags

    with (
        TemporaryDirectory(prefix="harebell-") as directory,
        _broker(*flags(Path(directory), _free_port())) as (broker, page),
        BadDay(broker.url) as clients,
    ):
        echo(f"broker    {broker.url}")
        echo(f"web page  {page}  (guest, guest)" if page else f"web page  none: {_without_page()}")
        begun = time.monotonic()
        found: list[dict[str, Any]] = []
        with click.progressbar(length=len(PLANTED), label=f"{len(PLANTED)} problems") as bar:
            while not clients.failures and time.monotonic() < begun + BAD_DAY_SECONDS:
                found = ask_command(broker.data_dir, "health.findings", {})
                bar.update(len(found) - bar.pos)
                if _names(found) == set(PLANTED):
                    break
                time.sleep(BAD_DAY_LOOK_SECONDS)
        if clients.failures:
            raise clients.failures[0]
        for each in found:
            echo(f"{each['rule']:20}{Path(each['name']).name}: {each['why']}")
        _compare(_names(found), set(PLANTED))
        echo(f"{verdict(counted(found))}: all was found in {time.monotonic() - begun:.0f} s")
        if stays:
            _stay(page)


def _names(found: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(each["rule"], Path(each["name"]).name) for each in found}


def _compare(found: set[tuple[str, str]], planted: set[tuple[str, str]]) -> None:
    """Refuse findings that are not those that were planted.

    Raises:
        Failure: some are missing, or there are others.
    """
    for text, names in (("not found", planted - found), ("not planted", found - planted)):
        if names:
            listed = ", ".join([f"{rule} {name}" for rule, name in sorted(names)])
            raise Failure(f"{text}: {listed}")


def _check_writable(path: Path) -> None:
    """Refuse a place for the picture before the work is done.

    Raises:
        Failure: it cannot be written.
    """
    try:
        with path.open("a"):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"cannot write {path}: {reason}; name another with --picture") from None


@contextmanager
def _broker(*more: str) -> Iterator[tuple[RunningBroker, str]]:
    """Run a broker for the length of a block; also give the address of its web page, or "".

    Args:
        *more: flags beside those of every demo.
    """
    from harebell.management.http.listening import is_installed

    flags = [*more, "--collect-statistics-interval", str(_STATISTICS_MS)]
    if _free(_AMQP_PORT):
        flags += ["--port", str(_AMQP_PORT)]
    page = ""
    if is_installed():
        port = MANAGEMENT_PORT if _free(MANAGEMENT_PORT) else _free_port()
        flags += ["--management-port", str(port)]
        page = f"http://localhost:{port}/"
    with RunningBroker(*flags) as broker:
        yield broker, page


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _run(
    url: str,
    page: str,
    path: Path,
    default_seconds: float,
    seconds: float | None,
    with_spark: bool | None,
) -> None:
    echo(f"broker    {url}")
    echo(f"web page  {page}  (guest, guest)" if page else f"web page  none: {_without_page()}")
    month = flights()
    with connect(url) as link:
        declare(link.channel())
    traffic = Traffic(url, month, default_seconds if seconds is None else seconds)
    begun = time.monotonic()
    with click.progressbar(length=len(month), label=f"{len(month):,} flights") as bar:
        traffic.run(lambda: bar.update(traffic.consumed - bar.pos))
    took = time.monotonic() - begun
    echo(
        f"exchange '{EXCHANGE}' routed {traffic.published:,} messages to three queues and the "
        f"stream '{STREAM}' in {took:.1f} s; {traffic.late:,} late ones are in '{LATE}'"
    )
    sums = traffic.sums
    _ask_spark(url, sums, with_spark)
    lines = _means(sums)
    path.write_text(picture(_TITLE, "minutes", lines), encoding="utf-8")
    echo(_sentence(lines))
    echo(f"picture   {path.resolve()}")


def _without_page() -> str:
    from harebell.management.http.listening import INSTALL

    return INSTALL


def _ask_spark(url: str, sums: Sums, wanted: bool | None) -> None:
    """Ask Spark the same, and compare.

    Raises:
        Failure: Spark is asked for and not there, or it finds something else.
    """
    from harebell.cli.demo.spark_answer import answer, missing, open_session

    if wanted is False:
        return
    needs = missing()
    if needs and wanted:
        raise Failure(needs)
    if needs:
        echo(f"Spark     not asked: {needs}")
        return
    begun = time.monotonic()
    with click.progressbar(length=3, label="Spark starts and asks the stream") as bar:
        bar.update(0)
        session = open_session()
        try:
            bar.update(1)
            rows = answer(session, url)
            bar.update(1)
        finally:
            session.stop()
        bar.update(1)
    if rows != sums:
        raise Failure(f"Spark finds other delays than the consumers: {rows} and not {sums}")
    echo(f"Spark     read the stream with SQL in {time.monotonic() - begun:.1f} s: the same answer")


def _means(sums: Sums) -> dict[str, Hours]:
    """Return the mean delay by airport and hour."""
    lines: dict[str, dict[int, float]] = {name: {} for name in AIRPORTS.values()}
    for (airport, hour), (minutes, count) in sorted(sums.items()):
        lines[AIRPORTS[airport]][hour] = minutes / count
    return dict(lines)


def _sentence(lines: dict[str, Hours]) -> str:
    """Say the answer in words."""
    value, hour, name = max(
        (value, hour, name) for name, line in lines.items() for hour, value in line.items()
    )
    earliest = min(hour for line in lines.values() for hour in line)
    first = max(line.get(earliest, 0.0) for line in lines.values())
    return (
        f"answer    delays grow over the day: from {first:.0f} minutes at {earliest}:00 to "
        f"{value:.0f} at {hour}:00 ({name})"
    )


def _stay(page: str) -> None:
    """Keep the broker until Ctrl-C."""
    try:
        echo(f"The broker stays for a look{' at ' + page if page else ''}; Ctrl-C ends it.")
        while True:
            time.sleep(_LONG_SECONDS)
    except KeyboardInterrupt:
        echo("")

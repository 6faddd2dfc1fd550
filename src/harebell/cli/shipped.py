"""The built-in pipelines as actions of `harebell pipeline`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harebell.cli.formats import takes_format
from harebell.cli.link import url_flag
from harebell.cli.number_flag import number_flag
from harebell.cli.piping import (
    check_warehouse,
    master_flag,
    metrics_flag,
    pipeline,
    place_of_table,
    run_all,
    seconds_given,
    sentences,
    short_session,
    warehouse_flag,
)
from harebell.cli.printed_rows import print_rows
from harebell.cli.progress import Progress
from harebell.cli.verb import WrongUsage
from harebell.cli.which_broker import amqp_url
from harebell.client.url import URL

if TYPE_CHECKING:
    from harebell.pipeline.builtin.pinned_table import PinnedTable
    from harebell.pipeline.builtin.replaying import Choice
    from harebell.pipeline.spec.description import Trigger

_EVERY = click.option(
    "--every",
    metavar="TIME",
    help="Go on for ever, with a micro-batch that often, such as 5s.  [default: end when empty]",
)
_OUTPUT = takes_format(
    "table", "csv", help_text="How rows are printed.", json_help="Print a line of JSON per row."
)
_DIRECTORY = click.Path(file_okay=False, path_type=Path)
_SHOWN = 1_000


def _trigger(every: str | None) -> Trigger:
    from harebell.pipeline.spec.description import Trigger

    return Trigger() if every is None else Trigger("every", seconds_given("--every", every))


def _condition(text: str | None) -> str:
    from harebell.pipeline.spec.statements import StatementError, condition

    if text:
        try:
            condition(text)
        except StatementError as error:
            raise WrongUsage(f"--where: {error}") from None
    return text or ""


@pipeline.command()
@click.argument("queue", required=False)
@click.option("--to", "directory", type=_DIRECTORY, required=True, help="Directory of the table.")
@click.option("--exchange", metavar="NAME", help="Keep what this exchange routes, by a queue.")
@click.option(
    "--binding-key", "keys", multiple=True, metavar="KEY", help="Only this.  [default: #]"
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(("delta", "parquet")),
    default="delta",
    help="Kind of table.  [default: delta]",
)
@click.option(
    "--by",
    type=click.Choice(("day", "hour", "none")),
    default="day",
    help="What the table is partitioned by.  [default: day]",
)
@number_flag(
    "--compact-every", "Micro-batches after which small files are put together.", 20, minimum=0
)
@_EVERY
@metrics_flag
@url_flag
@master_flag
def archive(
    queue: str | None,
    directory: Path,
    exchange: str | None,
    keys: tuple[str, ...],
    kind: str,
    by: str,
    compact_every: int,
    every: str | None,
    metrics: str | None,
    url: str | None,
    master: str | None,
) -> None:
    """Keep every message of a queue, or of an exchange, in a table."""
    from harebell.pipeline.builtin import builtin_pipelines as shipped

    if (queue is None) == (exchange is None):
        raise WrongUsage("say what to keep: a queue, or --exchange NAME")
    address, trigger = amqp_url(url), _trigger(every)
    with sentences():
        if exchange is not None:
            queue = shipped.tapped(URL.parse(address), exchange, keys or ("#",))
        assert queue is not None
        described = shipped.archive(
            address,
            queue,
            directory,
            kind=kind,
            period=by,
            trigger=trigger,
            compact_every=compact_every,
        )
    run_all([described], master, metrics)


@pipeline.command()
@click.argument("queue")
@click.option("--to", "target", metavar="URL", required=True, help="Broker to publish to.")
@click.option("--exchange", default="", metavar="NAME", help="Exchange to publish to.")
@click.option("--to-queue", metavar="NAME", help="Queue for all messages.  [default: QUEUE]")
@click.option(
    "--checkpoint",
    type=_DIRECTORY,
    required=True,
    help="Directory where it remembers how far it is.",
)
@_EVERY
@metrics_flag
@url_flag
@master_flag
def mirror(
    queue: str,
    target: str,
    exchange: str,
    to_queue: str | None,
    checkpoint: Path,
    every: str | None,
    metrics: str | None,
    url: str | None,
    master: str | None,
) -> None:
    """Publish every message of a queue to another broker."""
    from harebell.pipeline.builtin import builtin_pipelines as shipped

    if exchange and to_queue is not None:
        raise WrongUsage("--exchange and --to-queue exclude each other")
    described = shipped.mirror(
        amqp_url(url),
        queue,
        amqp_url(target, "--to"),
        exchange=exchange,
        to_queue=None if exchange else to_queue or queue,
        checkpoint=checkpoint,
        trigger=_trigger(every),
    )
    run_all([described], master, metrics)


@pipeline.command()
@click.argument("lake", metavar="TABLE")
@click.option("--catalog", metavar="CATALOG", help="TABLE is NAMESPACE.TABLE of this catalog.")
@warehouse_flag
@click.option("--exchange", default="", metavar="NAME", help="Exchange to publish to.")
@click.option("--routing-key", metavar="KEY", help="For all.  [default: each message's own]")
@click.option("--where", metavar="SQL", help="Only rows for which this is true.")
@click.option("--since", default="", metavar="TIME", help="Only from this time on.")
@click.option("--until", default="", metavar="TIME", help="Only up to before this time.")
@click.option("--rate", type=click.FloatRange(min=0), default=0.0, help="Most per second.")
@click.option("--skip", type=click.IntRange(min=0), default=0, help="Leave out so many.")
@click.option(
    "--checkpoint",
    type=_DIRECTORY,
    help="Publish each message once, and go on from here when it is started again.",
)
@click.option("--dry-run", is_flag=True, help="Only count them.")
@url_flag
@master_flag
def replay(
    lake: str,
    catalog: str | None,
    warehouse: str,
    exchange: str,
    routing_key: str | None,
    where: str | None,
    since: str,
    until: str,
    rate: float,
    skip: int,
    checkpoint: Path | None,
    dry_run: bool,
    url: str | None,
    master: str | None,
) -> None:
    """Publish the messages of a table again, in their order."""
    from harebell.pipeline.builtin.replaying import Choice, chosen
    from harebell.pipeline.builtin.replaying import replay as replayed

    choice = Choice(_condition(where), since, until, skip)
    broker = URL.parse(amqp_url(url))
    table = _pinned(lake, catalog, warehouse)
    if checkpoint is not None and not dry_run:
        _replay_once(checkpoint, table, choice, exchange, routing_key, rate, broker, master)
        return
    with sentences():
        plan = table()
    with sentences(), short_session("harebell replay", master) as spark:
        rows = chosen(plan.frame(spark), choice)
        if dry_run:
            with Progress("counting messages"):
                count = rows.count()
            click.echo(f"{count} messages would be published")
            return
        with Progress("publishing") as progress:
            count = replayed(rows, broker, exchange, routing_key, rate, progress.at, skip)
    click.echo(f"{count} messages published and confirmed")


def _pinned(name: str, catalog: str | None, warehouse: str) -> Callable[[], PinnedTable]:
    from harebell.pipeline.builtin.pinned_table import pinned, pinned_in_catalog

    check_warehouse(catalog, warehouse)
    if catalog is None:
        return lambda: pinned(Path(name).expanduser())
    place = place_of_table(name, catalog, warehouse)
    return lambda: pinned_in_catalog(name, place)


def _replay_once(
    checkpoint: Path,
    table: Callable[[], PinnedTable],
    choice: Choice,
    exchange: str,
    routing_key: str | None,
    rate: float,
    broker: URL,
    master: str | None,
) -> None:
    from harebell.pipeline.builtin.replaying_once import open_replay, replay_once
    from harebell.pipeline.run.locking import CheckpointLock

    with sentences(), CheckpointLock(checkpoint, "replay"):
        replay = open_replay(checkpoint, table, choice, exchange, routing_key, rate)
        with (
            short_session("harebell replay", master) as spark,
            Progress("publishing") as progress,
        ):
            count, before = replay_once(spark, replay, broker, rate, progress.at)
    there = f", {before} were there before" if before else ""
    click.echo(f"{count} messages published once{there}")


@pipeline.command()
@click.argument("queue")
@click.option(
    "--by",
    "groups",
    multiple=True,
    type=click.Choice(("queue", "reason", "routing_key", "signature")),
    help="What to group by; may be repeated.  [default: all four]",
)
@click.option("--where", metavar="SQL", help="Only messages for which this is true.")
@click.option("--retry", is_flag=True, help="Publish these again where they came from.")
@click.option("--discard", is_flag=True, help="Delete these.")
@click.option("--set-value", metavar="SQL", help="With --retry: what the body becomes.")
@_OUTPUT
@url_flag
@master_flag
def triage(
    queue: str,
    groups: tuple[str, ...],
    where: str | None,
    retry: bool,
    discard: bool,
    set_value: str | None,
    output: str,
    url: str | None,
    master: str | None,
) -> None:
    """Show dead letters in groups, try them again, or discard them."""
    from harebell.pipeline.builtin.queue_reports import GROUPS
    from harebell.pipeline.builtin.queue_reports import triage as asked

    condition = _condition(where)
    if retry and discard:
        raise WrongUsage("--retry and --discard exclude each other")
    if set_value and not retry:
        raise WrongUsage("--set-value belongs to --retry")
    if not retry and not discard:
        _show(asked(queue, groups or tuple(GROUPS), condition), url, output, master)
        return
    if not condition:
        raise WrongUsage("say which messages: --where SQL; --where true is all of them")
    _settle(queue, condition, retry, set_value, url, master)


def _settle(
    queue: str, where: str, retry: bool, value: str | None, url: str | None, master: str | None
) -> None:
    from harebell.pipeline.sql.queries import settle
    from harebell.pipeline.sql.verbs import SettleStatement

    verb = "RETRY" if retry else "DELETE"
    settlement = SettleStatement(verb, queue, where, None, {"value": value} if value else {})
    broker = URL.parse(amqp_url(url))
    with (
        sentences(),
        short_session("harebell triage", master) as spark,
        Progress(f"looking at queue {queue!r}"),
    ):
        done = settle(spark, settlement, broker)
    what = "published again where they came from" if retry else "discarded"
    click.echo(f"{done.settled} of {done.looked} messages of queue {queue!r} {what}")


@pipeline.command()
@click.argument("queue")
@click.option("--window", default="1m", metavar="TIME", help="Length of a window.  [default: 1m]")
@click.option("--keys", type=click.IntRange(min=1), metavar="NUMBER", help="Show so many top keys.")
@click.option(
    "--every",
    metavar="TIME",
    help="Go on for ever, and show the windows that have changed that often.",
)
@click.option(
    "--to", "directory", type=_DIRECTORY, help="With --every: keep windows in a Delta table."
)
@metrics_flag
@_OUTPUT
@url_flag
@master_flag
def stats(
    queue: str,
    window: str,
    keys: int | None,
    every: str | None,
    directory: Path | None,
    metrics: str | None,
    output: str,
    url: str | None,
    master: str | None,
) -> None:
    """Show the flow of a queue: rates, sizes, delays, hot keys."""
    from harebell.pipeline.builtin.queue_reports import stats as asked
    from harebell.pipeline.builtin.queue_reports import top_keys

    seconds = seconds_given("--window", window, "10s or 1m")
    if every is not None:
        if output != "table":
            raise WrongUsage(
                f"--every shows tables, not {output}; --to DIRECTORY keeps the windows"
            )
        _watch(queue, seconds, keys, _trigger(every), directory, amqp_url(url), (master, metrics))
        return
    for flag, given in (("--to", directory), ("--metrics", metrics)):
        if given is not None:
            raise WrongUsage(f"{flag} belongs to --every")
    _show(top_keys(queue, keys) if keys else asked(queue, seconds), url, output, master)


def _watch(
    queue: str,
    seconds: float,
    keys: int | None,
    trigger: Trigger,
    directory: Path | None,
    url: str,
    where: tuple[str | None, str | None],
) -> None:
    """Run stats as a streaming query; without a table it needs no permanent checkpoint."""
    from harebell.pipeline.builtin import builtin_pipelines as shipped

    with tempfile.TemporaryDirectory(prefix="harebell-stats-") as own:
        checkpoint = Path(own) if directory is None else directory / "_pipelines"
        described = shipped.stats(
            url,
            queue,
            seconds=seconds,
            keys=keys,
            trigger=trigger,
            checkpoint=checkpoint,
            directory=directory,
        )
        run_all([described], *where)


def _show(selection: Any, url: str | None, output: str, master: str | None) -> None:
    from harebell.pipeline.sql.queries import select

    address = amqp_url(url)
    with sentences(), short_session("harebell look", master) as spark:
        print_rows(select(spark, selection, address, Path()), _SHOWN, output)


ACTIONS: tuple[Callable[..., Any], ...] = (archive, mirror, replay, triage, stats)
"""The actions that this module defines."""

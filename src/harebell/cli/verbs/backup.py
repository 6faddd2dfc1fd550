"""`harebell backup`: back a running broker up."""

from __future__ import annotations

import time
from typing import Any

import click

from harebell.admin.limits import BACKUP_KEEP_MAX, BACKUP_RATE_BYTES, BACKUP_RATE_MAX_BYTES
from harebell.cli.broker_options import takes_broker
from harebell.cli.formats import takes_json
from harebell.cli.limits import JOB_LOOK_SECONDS
from harebell.cli.nouns import RunningBroker
from harebell.cli.progress import Progress
from harebell.cli.verb import Failure, Verb, echo
from harebell.cli.verbs.status import size_text
from harebell.cli.which_broker import absolute
from harebell.config.values import size

_DONE = "done"


def _rate(_context: click.Context, _option: click.Parameter, value: str) -> int:
    try:
        return int(size(0, BACKUP_RATE_MAX_BYTES)(value))
    except ValueError as error:
        raise click.BadParameter(f"'{value}': it {error}") from None


@click.command(cls=Verb)
@click.argument("target")
@takes_broker
@takes_json("Print the backup as one line of JSON.")
@click.option(
    "--keep",
    metavar="COUNT",
    type=click.IntRange(0, BACKUP_KEEP_MAX),
    default=0,
    help="How many backups to keep in the target, this one included.  [default: all]",
)
@click.option(
    "--rate",
    metavar="BYTES",
    default=str(BACKUP_RATE_BYTES),
    callback=_rate,
    help="Most bytes per second that are copied, such as 20MiB; 0 for no limit.  [default: 50MiB]",
)
def backup(
    target: str, data_dir: str | None, config_file: str | None, as_json: bool, keep: int, rate: int
) -> None:
    """Back a running broker up to TARGET, as it is at one commit.

    TARGET is a directory of the broker's machine, which the broker writes to and makes if it is
    missing, or a place in an object store, such as s3://bucket/backups, for which it needs pyarrow.
    The files of an earlier backup in it that are the same are not copied again. No client waits
    meanwhile. `harebell restore` restores a backup, and `harebell store check TARGET` checks it.
    """
    broker = RunningBroker(data_dir, config_file, as_json)
    row = broker.ask("backups.start", {"target": absolute(target), "keep": keep, "rate": rate})
    try:
        with Progress(f"backing up to {target}, bytes") as progress:
            while not row["ended"]:
                time.sleep(JOB_LOOK_SECONDS)
                row = _same(broker, row)
                progress.at(row["copied_bytes"])
    except KeyboardInterrupt:
        echo("the backup goes on: `harebell backups cancel` ends it", err=True)
        raise
    if row["state"] != _DONE:
        raise Failure(row["problem"])
    copied = f"{row['copied_files']} files, {size_text(row['copied_bytes'])}"
    broker.print_done(
        row,
        f"backup {row['name']} in {row['target']} is complete: {row['files']} files, "
        f"{size_text(row['bytes'])}; copied: {copied}",
    )


def _same(broker: RunningBroker, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a backup as it is now."""
    for each in reversed(broker.ask("backups.list", {})):
        if each["id"] == row["id"]:
            return dict(each)
    raise Failure("the broker was started again before the backup was complete: make it again")

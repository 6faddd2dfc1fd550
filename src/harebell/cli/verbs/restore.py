"""`harebell restore`: restore a backup to an empty data directory."""

from __future__ import annotations

from pathlib import Path

import click

from harebell.base.errors import HarebellError
from harebell.cli.progress import Progress
from harebell.cli.verb import Failure, Verb, echo
from harebell.cli.verbs.status import size_text
from harebell.cli.which_broker import absolute


@click.command(cls=Verb)
@click.argument("source")
@click.option(
    "--data-dir",
    metavar="DIRECTORY",
    required=True,
    help="The data directory to make; it has to be missing or empty.",
)
@click.option(
    "--backup", "name", metavar="NAME", default="", help="Which backup.  [default: the newest]"
)
def restore(source: str, data_dir: str, name: str) -> None:
    """Restore a backup from SOURCE to a data directory.

    SOURCE is the target of `harebell backup`. Every byte is compared with its checksum; a backup
    that is damaged or not complete restores nothing. Run it as the user of the broker, who is to
    own the files, and start the broker on the directory then: it has everything that was confirmed
    before the backup began.
    """
    from harebell.server.backup.restoring import restore as restored
    from harebell.server.backup.target import target_at

    try:
        with Progress(f"restoring {source}"):
            manifest = restored(target_at(absolute(source)), name, Path(data_dir).absolute())
    except HarebellError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        at = f" ({error.filename})" if error.filename else ""
        raise Failure(f"the backup in {source} is not restored: {reason}{at}") from None
    total = size_text(sum(file.size for file in manifest.files.values()))
    echo(
        f"backup {manifest.name} was restored to {data_dir}: {len(manifest.files)} files, {total}, "
        f"as they were at {manifest.about['began']}"
    )
    if manifest.stores > 1:
        echo(f"it has {manifest.stores} stores: start the broker with --workers {manifest.stores}")

"""`harebell store`: check, dump and repair the data directory of a stopped broker."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harebell.base.errors import DiskError, StoreError
from harebell.base.limits import EXIT_DISK
from harebell.base.printable import printable
from harebell.cli.progress import Progress
from harebell.cli.verb import DAMAGED, DiskFailed, Failure, Verb, WrongUsage, echo
from harebell.cli.verbs.status import size_text
from harebell.server.config import Config
from harebell.server.config.values import schema as schema_name

if TYPE_CHECKING:
    from harebell.store.check import Holding, Survey

CHECK, DUMP, REPAIR, COPY = "check", "dump", "repair", "copy"
_URLS = ("postgresql://", "postgres://")
_COLUMNS = "{:<10} {:<28} {:<9} {:>10} {:>10} {:>12} {:>9}"
_HEADS = ("vhost", "queue", "kind", "messages", "delivered", "size", "segments")
_NO_QUEUE = "(no queue)"


def _checked_schema(_context: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        return schema_name(value)
    except ValueError as error:
        raise click.BadParameter(f"'{value}': it {error}") from None


@click.command(cls=Verb)
@click.argument("action", type=click.Choice((CHECK, DUMP, REPAIR, COPY)))
@click.argument("place", metavar="DIRECTORY")
@click.argument("target", metavar="[TO]", required=False)
@click.option("-q", "--queue", metavar="NAME", default="", help="Only queues of this name.")
@click.option("--vhost", metavar="NAME", default="", help="Only queues of this vhost.")
@click.option(
    "--schema",
    metavar="NAME",
    default=Config().storage_schema,
    show_default=True,
    callback=_checked_schema,
    help="The schema of the store in PostgreSQL, for copy.",
)
def store(action: str, place: str, target: str | None, queue: str, vhost: str, schema: str) -> None:
    """Look into the data directory of a broker that does not run.

    check says what is in it and what is damaged; dump prints its messages, a line of JSON each;
    both leave it as it is. repair does what a broker does when it starts: damaged bytes go to
    quarantine/, and what can be read stays. The exit code is 3 when there is damage, and 74 when
    the disk fails to read something: then repair changes nothing.

    copy DIRECTORY URL copies it to a store in PostgreSQL (postgresql://...), and copy URL DIRECTORY
    copies that to a new directory. No broker may run on either. An interrupted copy leaves nothing
    that a broker could start on: run it again.
    """
    if (action == COPY) != (target is not None):
        raise WrongUsage("copy has two arguments, FROM and TO; the other actions have one")
    if target is not None:
        _copy(place, target, schema)
        return
    if place.startswith(_URLS):
        raise WrongUsage(
            f"{action} looks into a data directory: copy the store into one first, with "
            "`harebell store copy URL DIRECTORY`"
        )
    directory = Path(place)
    try:
        if action == REPAIR:
            _check_readable(directory)
        with _survey(directory, mend=action == REPAIR) as (survey, complaints):
            found = []
            with Progress(f"reading {directory}, queues") as progress:
                for holding in survey.holdings(vhost=vhost, queue=queue):
                    found.append(holding)
                    progress.at(len(found))
                    if action == DUMP and holding.kind != "transactions":
                        _dump(survey, holding)
            unread = _print_unread(found)
            if action == DUMP:
                damage = _print_damage(found, complaints, survey.remarks, err=True)
            else:
                _show(found)
                damage = _print_damage(found, complaints, survey.remarks, err=False)
                _print_quarantine(found, survey.quarantine(), mended=action == REPAIR)
    except DiskError as error:
        raise DiskFailed(str(error)) from None
    except (StoreError, OSError) as error:
        raise Failure(str(error)) from None
    if queue and not found:
        raise Failure(f"there is no queue {queue!r} in {directory}")
    if unread or damage:
        click.get_current_context().exit(EXIT_DISK if unread else DAMAGED)


def _copy(source: str, target: str, schema: str) -> None:
    """Copy a store between a directory and PostgreSQL."""
    if source.startswith(_URLS) == target.startswith(_URLS):
        raise WrongUsage("copy goes from a directory to PostgreSQL (postgresql://...), or back")
    # Imported only if it is used: it loads the driver of PostgreSQL.
    from harebell.server.postgresql.store_copy import into_directory, into_postgresql

    try:
        if target.startswith(_URLS):
            done = into_postgresql(Path(source), target, schema)
        else:
            done = into_directory(source, schema, Path(target))
    except (StoreError, OSError) as error:
        raise Failure(str(error)) from None
    echo(f"copied and compared {done.files} files of logs, {size_text(done.byte_count)}")
    if done.elsewhere:
        echo(f"vhosts of other stores were not copied: use --schema {', '.join(done.elsewhere)}")


def _check_readable(directory: Path) -> None:
    """Read the whole directory once before anything is changed.

    Raises:
        DiskError: a read failed.
    """
    with _survey(directory, mend=False) as (survey, _), Progress(f"reading {directory}"):
        unread = [text for holding in survey.holdings() for text in holding.unread]
    if unread:
        raise DiskError("\n".join([*unread, "nothing was changed: copy the disk first"]))


@contextmanager
def _survey(directory: Path, *, mend: bool) -> Iterator[tuple[Survey, list[str]]]:
    """Lock and survey the directory; yield the survey and the errors of the definitions."""
    from harebell.base.osfs import OsFiles
    from harebell.server.disk.lock import DirectoryLock
    from harebell.server.disk.storage import decoded_table
    from harebell.store.check import Survey
    from harebell.store.definitions import AHEAD, NAME, FormatError, read_definitions
    from harebell.wire.v09.fields import encode_table

    directory = directory.resolve()
    if not (directory / NAME).is_file() and not (directory / "queues").is_dir():
        raise StoreError(f"{directory} is no data directory of Harebell: it has no {NAME}")
    lock = DirectoryLock(directory, looking=not mend)
    files = OsFiles(str(directory), looking=not mend)
    sealed = not os.access(directory, os.W_OK) and not (directory / AHEAD).exists()
    complaints: list[str] = []
    definitions = None
    try:
        try:
            definitions = read_definitions(
                str(directory), files, encode_table, decoded_table, sealed=sealed
            )
            was_clean = definitions.was_clean
            survey = Survey(files, definitions, was_clean=was_clean, mend=mend)
        except (DiskError, FormatError):
            raise
        except StoreError as error:
            # Without definitions the messages can still be read, but not the names of their queues.
            complaints.append(str(error))
            survey = Survey(files, None, mend=mend)
        yield survey, complaints
        survey.close()
    finally:
        if definitions is not None:
            definitions.let_go()
        lock.release()


def _label(holding: Holding) -> str:
    if not holding.kind:
        return f"logs {holding.identity}"
    if holding.kind == "transactions":
        return "the log of prepared transactions"
    return f"{'exchange' if holding.kind == 'exchange' else 'queue'} {holding.name!r}"


def _show(found: list[Holding]) -> None:
    echo(_COLUMNS.format(*_HEADS))
    for holding in found:
        row = _COLUMNS.format(
            printable(holding.vhost or "-"),
            printable(holding.name if holding.kind else _NO_QUEUE),
            holding.kind or "-",
            holding.messages,
            holding.unacknowledged,
            size_text(holding.byte_count),
            holding.segments,
        )
        echo(row.rstrip())
    messages = sum(holding.messages for holding in found)
    size = size_text(sum(holding.byte_count for holding in found))
    segments = sum(holding.segments for holding in found)
    echo(f"{messages} messages, {size} in {segments} segments")


def _print_unread(found: list[Holding]) -> bool:
    """Print the logs that cannot be read; True if there are any."""
    lines = [f"not read: {_label(holding)}: {text}" for holding in found for text in holding.unread]
    for line in lines:
        echo(line, err=True)
    return bool(lines)


def _print_damage(
    found: list[Holding], complaints: list[str], remarks: list[str], *, err: bool
) -> bool:
    """Print damage and notes; True if there is damage."""
    lines = [f"damaged: {text}" for text in complaints]
    for holding in found:
        lines += [f"damaged: {_label(holding)}: {text}" for text in holding.damage]
    for line in lines:
        echo(line, err=err)
    for text in remarks:
        echo(f"note: {text}", err=err)
    for holding in found:
        for text in holding.harmless:
            echo(f"note: {_label(holding)}: {text}", err=err)
    if not (lines or any(holding.unread for holding in found)):
        echo("no damage", err=err)
    return bool(lines)


def _print_quarantine(found: list[Holding], there: list[str], *, mended: bool) -> None:
    verb = "moved to" if mended else "would go to"
    for holding in found:
        for name in dict.fromkeys(holding.quarantined):
            echo(f"{verb} {name}")
    if there:
        echo(f"{len(there)} files in quarantine")


def _dump(survey: Survey, holding: Holding) -> None:
    from harebell.base.message import Properties
    from harebell.cli.show import as_json
    from harebell.client.message import Delivered

    for position, message, seen in survey.messages(holding):
        properties = Properties(message.raw)
        shown = as_json(
            Delivered(message.body, message.exchange, message.routing_key, properties, 0, seen)
        )
        place = {"vhost": holding.vhost, "queue": holding.name, "position": position}
        # Names may have bytes that are not UTF-8; json.dumps escapes them.
        echo(json.dumps({**place, **shown}))

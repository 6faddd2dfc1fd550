"""`harebell store`: check, dump and repair the data directory of a stopped broker."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import click

from harebell.base.errors import DiskError, HarebellError, StoreError
from harebell.base.printable import printable
from harebell.cli.progress import Progress
from harebell.cli.verb import DAMAGED, DiskFailed, Failure, Verb, WrongUsage, echo
from harebell.cli.verbs.status import size_text
from harebell.cli.which_broker import absolute
from harebell.config import Config
from harebell.config.values import schema as schema_name
from harebell.server.limits import EXIT_DISK

if TYPE_CHECKING:
    from harebell.store.check import Holding, Survey

CHECK, DUMP, REPAIR, COPY, ADOPT = "check", "dump", "repair", "copy", "adopt"
SPLIT, JOIN = "split", "join"
QUEUE_TYPES = ("classic", "quorum", "stream")
DEFAULT_VHOST = "/"
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
@click.argument("action", type=click.Choice((CHECK, DUMP, REPAIR, COPY, ADOPT, SPLIT, JOIN)))
@click.argument("place", metavar="DIRECTORY|URL")
@click.argument("target", metavar="[TO]", required=False)
@click.option(
    "-q",
    "--queue",
    metavar="NAME",
    default="",
    help="Only queues of this name; for adopt, its name.",
)
@click.option("--vhost", metavar="NAME", default="", help="Only queues of this vhost.")
@click.option(
    "--type",
    "kind",
    type=click.Choice(QUEUE_TYPES),
    default=QUEUE_TYPES[0],
    show_default=True,
    help="The type of the queue, for adopt.",
)
@click.option(
    "--schema",
    metavar="NAME",
    default=Config().storage_schema,
    show_default=True,
    callback=_checked_schema,
    help="The schema of the store in PostgreSQL.",
)
@click.option(
    "--place",
    "places",
    metavar="VHOST=STORE",
    multiple=True,
    help="For split, the number of the store that a vhost goes to; may be repeated.",
)
@click.option(
    "--backup",
    metavar="NAME",
    default="",
    help="Which backup, where DIRECTORY is a target of backups.  [default: the newest]",
)
def store(
    action: str,
    place: str,
    target: str | None,
    queue: str,
    vhost: str,
    kind: str,
    schema: str,
    places: tuple[str, ...],
    backup: str,
) -> None:
    """Look into the data directory of a broker that does not run.

    check says what is in it and what is damaged; dump prints its messages, a line of JSON each;
    both leave it as it is. repair does what a broker does when it starts: damaged bytes go to
    quarantine/, and what can be read stays. The exit code is 3 when there is damage, and 74 when
    the disk fails to read something: then repair changes nothing. check and dump also look into a
    store in PostgreSQL (postgresql://...), whose brokers may run.

    copy DIRECTORY URL copies it to a store in PostgreSQL (postgresql://...), and copy URL DIRECTORY
    copies that to a new directory. No broker may run on either. An interrupted copy leaves nothing
    that a broker could start on: run it again.

    adopt DIRECTORY LOG --queue NAME makes a queue of a log that belongs to none, as check shows it.

    split DIRECTORY NUMBER divides it into so many stores, for a broker with so many workers; join
    DIRECTORY makes it one again. Vhosts are spread by their bytes, but for those with --place, and
    the vhost / stays in store 1. What is interrupted goes on when it is run again.

    check and dump take the target of `harebell backup` too, and compare every checksum.
    """
    if (action in (COPY, ADOPT, SPLIT)) != (target is not None):
        raise WrongUsage(
            "copy has two arguments, FROM and TO, adopt has DIRECTORY and LOG, and split has "
            "DIRECTORY and NUMBER; the other actions have one"
        )
    if action in (SPLIT, JOIN):
        _divide(Path(place), target, places)
        return
    if target is not None and action == COPY:
        _copy(place, target, schema)
        return
    if place.startswith(_URLS):
        if action not in (CHECK, DUMP):
            raise WrongUsage(
                f"{action} changes a data directory: copy the store into one first, with "
                "`harebell store copy URL DIRECTORY`"
            )
        with TemporaryDirectory(prefix="harebell-store-") as aside:
            # Imported only if it is used: it loads the driver of PostgreSQL.
            from harebell.cluster.postgresql.store_copy import look_into

            try:
                shown, damaged = look_into(place, schema, Path(aside))
            except (StoreError, OSError) as error:
                raise Failure(str(error)) from None
            _end(_look(action, aside, shown, damaged, queue, vhost), queue, shown)
        return
    if target is not None:
        _adopt(Path(place), target, vhost or DEFAULT_VHOST, queue, kind)
        return
    _look_at_all(action, place, queue, vhost, backup)


def _look_at_all(action: str, place: str, queue: str, vhost: str, backup: str) -> None:
    """Check, dump or repair every store of a data directory; there is one, unless it was divided.

    Raises:
        Failure: the directory cannot be used, or has no such queue.
    """
    # Imported only if it is used, as all that looks into a store.
    from harebell.cluster.workers.layout import data_dirs, stores_of
    from harebell.server.backup.looking import has_backups, stores_in

    try:
        if has_backups(place):
            count = stores_in(absolute(place), backup)
            stores = [(place, f"store {number}", number) for number in range(1, count + 1)]
        else:
            count = stores_of(Path(place))
            stores = [(str(each), str(each), 1) for each in data_dirs(Path(place), count)]
    except (StoreError, OSError) as error:
        raise Failure(str(error)) from None
    if count == 1:
        stores = [(place, place, 1)]
    results = [
        _look(action, each, shown, [], queue, vhost, backup, several=count > 1, number=number)
        for each, shown, number in stores
    ]
    _end(
        _Result(max(each.code for each in results), any(each.has_queues for each in results)),
        queue,
        place,
    )


def _end(result: _Result, queue: str, shown: str) -> None:
    """End with the exit code of a look.

    Raises:
        Failure: there is no such queue.
    """
    if queue and not result.has_queues:
        raise Failure(f"there is no queue {queue!r} in {shown}")
    if result.code:
        click.get_current_context().exit(result.code)


class _Result(NamedTuple):
    """What a look at a store has shown.

    Args:
        code: the exit code; 0 if nothing is wrong.
        has_queues: whether there are queues of those in question.
    """

    code: int
    has_queues: bool


def _look(
    action: str,
    directory: str,
    shown: str,
    damaged: list[str],
    queue: str,
    vhost: str,
    backup: str = "",
    *,
    several: bool = False,
    number: int = 1,
) -> _Result:
    """Check, dump or repair a directory.

    Args:
        action: what to do.
        directory: that of a broker, a copy of a store in PostgreSQL, or a target of backups.
        shown: what it is called.
        damaged: what is damaged of where it comes from.
        queue: only queues of this name; "" for all.
        vhost: only queues of this vhost; "" for all.
        backup: the name of the backup; "" for the newest.
        several: whether it is one of several stores.
        number: of the store, in a backup.

    Raises:
        Failure: the directory cannot be used.
    """
    if several and action != DUMP:
        echo(f"{shown}:")
    try:
        with _surveyed(directory, backup, number, mend=action == REPAIR) as (survey, complaints):
            complaints[:0] = damaged
            findings = []
            with Progress(f"reading {shown}, queues") as progress:
                for holding in survey.holdings(vhost=vhost, queue=queue):
                    findings.append(holding)
                    progress.at(len(findings))
                    if action == DUMP and not holding.of_broker:
                        _dump(survey, holding)
            unread = _print_unread(findings)
            if action == DUMP:
                damage = _print_damage(findings, complaints, survey.remarks, err=True)
            else:
                _show(findings)
                damage = _print_damage(findings, complaints, survey.remarks, err=False)
                _print_quarantine(findings, survey.quarantine(), mended=action == REPAIR)
    except DiskError as error:
        raise DiskFailed(str(error)) from None
    except (StoreError, OSError) as error:
        raise Failure(str(error)) from None
    code = EXIT_DISK if unread else DAMAGED if damage else 0
    return _Result(code, bool(findings))


def _copy(source: str, target: str, schema: str) -> None:
    """Copy a store between a directory and PostgreSQL."""
    if source.startswith(_URLS) == target.startswith(_URLS):
        raise WrongUsage("copy goes from a directory to PostgreSQL (postgresql://...), or back")
    # Imported only if it is used: it loads the driver of PostgreSQL.
    from harebell.cluster.postgresql.store_copy import into_directory, into_postgresql

    try:
        if target.startswith(_URLS):
            done = into_postgresql(Path(source), target, schema)
        else:
            done = into_directory(source, schema, Path(target))
    except (StoreError, OSError) as error:
        raise Failure(str(error)) from None
    echo(f"copied and compared {done.files} files of logs, {size_text(done.byte_count)}")
    for text in done.damaged:
        echo(f"damaged: {text}")
    if done.elsewhere:
        echo(f"vhosts of other stores were not copied: use --schema {', '.join(done.elsewhere)}")


def _divide(directory: Path, count: str | None, places: tuple[str, ...]) -> None:
    """Divide a data directory into several stores, or make it one again."""
    # Imported only if it is used, as all that looks into a store.
    from harebell.cluster.workers.division import join, split
    from harebell.server.limits import STORAGE_STORES

    placed: dict[str, int] = {}
    for each in places:
        name, _, number = each.rpartition("=")
        if not (name and number.isdecimal()):
            raise WrongUsage(f"--place {each!r}: it is a vhost and the number of a store, as a=2")
        placed[name] = int(number)
    directory = directory.resolve()
    try:
        if count is None:
            done = join(directory)
        elif count.isdecimal() and 1 < int(count) <= STORAGE_STORES:
            done = split(directory, int(count), placed)
        else:
            raise WrongUsage(f"{count!r}: the number of stores is from 2 to {STORAGE_STORES}")
    except DiskError as error:
        raise DiskFailed(str(error)) from None
    except (HarebellError, OSError) as error:
        raise Failure(str(error)) from None
    for store_number, name in sorted((place, name) for name, place in done.vhosts.items()):
        echo(f"store {store_number}: vhost '{printable(name)}'")
    logs = f"{done.logs} logs"
    echo(
        f"moved and checked {logs}: start the broker with --workers {count}"
        if count
        else f"moved and checked {logs}: start the broker without workers"
    )


def _adopt(directory: Path, identity: str, vhost: str, queue: str, kind: str) -> None:
    """Make a queue of a log that belongs to none."""
    from harebell.base.osfs import OsFiles
    from harebell.server.disk.lock import DirectoryLock
    from harebell.server.disk.storage import decoded_table
    from harebell.store.adoption import adopt
    from harebell.store.definitions import NAME, open_definitions
    from harebell.wire.v09.fields import encode_table

    if not queue:
        raise WrongUsage("adopt needs the name of the queue that it makes: give --queue NAME")
    directory = directory.resolve()
    if not (directory / NAME).is_file():
        raise Failure(f"{directory} is no data directory of Harebell: it has no {NAME}")
    try:
        lock = DirectoryLock(directory)
        try:
            files = OsFiles(str(directory))
            definitions = open_definitions(str(directory), files, encode_table, decoded_table)
            try:
                count = adopt(files, definitions, identity, vhost, queue, kind)
            finally:
                definitions.close()
        finally:
            lock.release()
    except DiskError as error:
        raise DiskFailed(str(error)) from None
    except (HarebellError, OSError) as error:
        raise Failure(str(error)) from None
    echo(f"queue '{printable(queue)}' in vhost '{printable(vhost)}' has {count} messages now")


def _check_readable(directory: Path) -> None:
    """Read the whole directory once before anything is changed.

    Raises:
        DiskError: a read failed.
    """
    with _survey(directory, mend=False) as (survey, _), Progress(f"reading {directory}"):
        unread = [text for holding in survey.holdings() for text in holding.unread]
    if unread:
        raise DiskError("\n".join([*unread, "nothing was changed: copy the disk first"]))


def _surveyed(
    place: str, backup: str, number: int, *, mend: bool
) -> AbstractContextManager[tuple[Survey, list[str]]]:
    """Survey a data directory or a backup."""
    # Imported only if it is used, as all that looks into a store.
    from harebell.server.backup.looking import has_backups, surveyed

    if has_backups(place):
        if mend:
            raise WrongUsage("a backup is not repaired: restore it, and repair the data directory")
        return surveyed(absolute(place), backup, number)
    if backup:
        raise WrongUsage(f"{place} is no target of backups: leave --backup out")
    directory = Path(place)
    if mend:
        _check_readable(directory)
    return _survey(directory, mend=mend)


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
    complaints: list[str] = []
    definitions = None
    aside = TemporaryDirectory(prefix="harebell-store-")
    try:
        try:
            sealed, copied = not mend, ""
            ahead = directory / AHEAD
            if not mend and ahead.is_file() and ahead.stat().st_size:
                # SQLite reads a write-ahead log only where it may write, so it gets copies.
                for name in (NAME, AHEAD):
                    shutil.copyfile(directory / name, Path(aside.name) / name)
                sealed, copied = False, aside.name
            definitions = read_definitions(
                str(directory), files, encode_table, decoded_table, sealed=sealed, copied=copied
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
            definitions.detach()
        aside.cleanup()
        lock.release()


def _label(holding: Holding) -> str:
    if not holding.kind:
        return f"logs {holding.identity}"
    if holding.of_broker:
        return f"the log of {holding.name}"
    return f"{'exchange' if holding.kind == 'exchange' else 'queue'} {holding.name!r}"


def _show(holdings: list[Holding]) -> None:
    echo(_COLUMNS.format(*_HEADS))
    for holding in holdings:
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
    messages = sum(holding.messages for holding in holdings)
    size = size_text(sum(holding.byte_count for holding in holdings))
    segments = sum(holding.segments for holding in holdings)
    echo(f"{messages} messages, {size} in {segments} segments")


def _print_unread(holdings: list[Holding]) -> bool:
    """Print the logs that cannot be read; True if there are any."""
    lines = [
        f"not read: {_label(holding)}: {text}" for holding in holdings for text in holding.unread
    ]
    for line in lines:
        echo(line, err=True)
    return bool(lines)


def _print_damage(
    holdings: list[Holding], complaints: list[str], remarks: list[str], *, err: bool
) -> bool:
    """Print damage and notes; True if there is damage."""
    lines = [f"damaged: {text}" for text in complaints]
    for holding in holdings:
        lines += [f"damaged: {_label(holding)}: {text}" for text in holding.damage]
    for line in lines:
        echo(line, err=err)
    for text in remarks:
        echo(f"note: {text}", err=err)
    for holding in holdings:
        for text in holding.harmless:
            echo(f"note: {_label(holding)}: {text}", err=err)
    if not (lines or any(holding.unread for holding in holdings)):
        echo("no damage", err=err)
    return bool(lines)


def _print_quarantine(holdings: list[Holding], there: list[str], *, mended: bool) -> None:
    verb = "moved to" if mended else "would go to"
    for holding in holdings:
        for name in dict.fromkeys(holding.quarantined):
            echo(f"{verb} {name}")
    if there:
        echo(f"{len(there)} files in quarantine")


def _dump(survey: Survey, holding: Holding) -> None:
    from harebell.base.message import Properties
    from harebell.cli.show import as_json
    from harebell.client.message import Delivered
    from harebell.front.convert import basic_of

    for position, stored, seen in survey.messages(holding):
        message = basic_of(stored)
        properties = Properties(message.raw)
        shown = as_json(
            Delivered(message.body, message.exchange, message.routing_key, properties, 0, seen)
        )
        place = {"vhost": holding.vhost, "queue": holding.name, "position": position}
        # Names may have bytes that are not UTF-8; json.dumps escapes them.
        echo(json.dumps({**place, **shown}))

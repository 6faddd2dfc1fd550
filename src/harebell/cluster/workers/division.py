"""Make several stores of one data directory, and one of several, while no broker runs on it.

A vhost moves as a whole: its rows in the definitions, the directories of its logs, which are
renamed, and the records of its publishers. `stores/dividing` says what is under way; no broker
starts while it is there. Each step may be done again, so what is interrupted goes on where it was:

    1    the rows are in both stores         committed in the target
    2    the logs are in the target          renamed, and both directories synced
    3    the rows are in the target alone    committed in the source

Only directories that were closed in good order are divided: their logs need no redo file, and have
no rows of an uncommitted batch.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from harebell.base.clock import Clock
from harebell.base.errors import StoreError
from harebell.base.gauge import Gauge
from harebell.base.osfs import OsFiles, sync_path
from harebell.base.ports import BRANCH_LOG, JOB_LOG, PUBLISHER_LOG, Log
from harebell.cluster.limits import DIVISION_ROOM_BYTES
from harebell.cluster.stores import DIRECTORY, FIRST_STORE, data_dir_of
from harebell.cluster.workers.layout import (
    DIVIDING,
    check_whole,
    data_dirs,
    stores_of,
    write_number,
)
from harebell.model.publishing.publishers import UNFINISHED_BATCH, vhost_of_record
from harebell.server.audit_trail import DIRECTORY as AUDIT_TRAIL
from harebell.server.disk.lock import DirectoryLock
from harebell.server.disk.storage import decoded_table
from harebell.store import inventory
from harebell.store.definitions import NAME as DEFINITIONS
from harebell.store.definitions import open_definitions
from harebell.store.disk import QUEUES, DiskStore
from harebell.store.owners import claims
from harebell.store.quarantine import DIRECTORY as QUARANTINE
from harebell.store.tables import TABLES
from harebell.wire.v09.fields import encode_table

DEFAULT_VHOST = "/"
"""The vhost that stays in store 1: every broker has it, and the exchanges of events are in it."""
_OWN = (BRANCH_LOG, JOB_LOG, PUBLISHER_LOG)
_VHOST, _USER, _ERA, _DROPPED = "vhost", "user", "era", "dropped"


class Moved(NamedTuple):
    """What was moved.

    Args:
        vhosts: the store of each vhost.
        logs: how many logs the stores have together.
    """

    vhosts: dict[str, int]
    logs: int


class _Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is under way.

    Args:
        before: how many stores there were.
        after: how many there are to be.
        vhosts: the store of each vhost in the end.
        logs: the directories of all logs, those of stores themselves left out.
        counts: the numbers of segments that the inventories of all stores had, by the identity of
            the log; an interruption loses the inventories themselves.
    """

    before: int
    after: int
    vhosts: dict[str, int]
    logs: list[str]
    counts: dict[str, int] = {}


class _OpenStore:
    """A store that this process alone has open.

    Args:
        directory: its data directory; made if it is missing.
        again: whether it may be as an interrupted division has left it.

    Raises:
        StoreError: it is in use, damaged, or was not closed in good order.
    """

    def __init__(self, directory: Path, *, again: bool) -> None:
        self.directory = directory
        self._lock = DirectoryLock(directory)
        try:
            self._files = OsFiles(str(directory))
            self.definitions = open_definitions(
                str(directory), self._files, encode_table, decoded_table
            )
            try:
                self._open(again=again)
            except BaseException:
                self.definitions.close()
                raise
        except BaseException:
            self._lock.release()
            raise

    def _open(self, *, again: bool) -> None:
        clean = self.definitions.was_clean
        if not (clean or again):
            raise StoreError(
                f"{self.directory} was not closed in good order: start the broker on it as before, "
                "end it with SIGTERM, and try again"
            )
        self._damage: list[str] = []
        self._store = DiskStore(
            self._files,
            self.definitions,
            Gauge(),
            Clock(0),
            os.urandom,
            lambda level, text: self._damage.append(text) if level == "error" else None,
            clean=clean,
        )
        self.counts = {
            identity: count
            for identity, count in self._store.expected.items()
            if identity not in _OWN
        }
        self.publishers: Log | None = self._log(PUBLISHER_LOG)
        branches = self._log(BRANCH_LOG)
        if branches is not None and any(_live(branches)):
            self._refuse(
                "has prepared transactions: commit them or roll them back (`harebell transactions`)"
            )
        if any(
            data[:1] == UNFINISHED_BATCH
            for data in map(self._body, () if self.publishers is None else _live(self.publishers))
        ):
            self._refuse("has a batch that is not committed: start the broker on it, and end it")
        if self._damage:
            self._refuse(f"is damaged ({self._damage[0]}): see `harebell store check`")

    def _refuse(self, why: str) -> None:
        self._store.shut()
        raise StoreError(f"{self.directory} {why}")

    def _log(self, identity: str) -> Log | None:
        there = (self.directory / QUEUES / identity).is_dir()
        return self._store.open_log(identity, durable=True, keep_all=True) if there else None

    def _body(self, position: int) -> bytes:
        assert self.publishers is not None, "there is a position in it"
        message = self.publishers.read(position)
        return b"" if message is None else message.body

    # --- what it has ------------------------------------------------------------------------------

    def vhosts(self) -> set[str]:
        """Return the names of the vhosts with something stored."""
        names = {row[0] for row in self.definitions.stored(_VHOST)}
        for kind, table in TABLES.items():
            if _VHOST in table.key:
                place = table.key.index(_VHOST)
                names |= {row[place] for row in self.definitions.stored(kind)}
        return names

    def rows(self, vhosts: Iterable[str]) -> list[tuple[str, tuple[object, ...]]]:
        """Return the rows of vhosts as they are stored, each with its kind."""
        chosen = set(vhosts)
        found = [(_VHOST, row) for row in self.definitions.stored(_VHOST) if row[0] in chosen]
        for kind, table in TABLES.items():
            if _VHOST in table.key:
                place = table.key.index(_VHOST)
                stored = self.definitions.stored(kind)
                found += [(kind, row) for row in stored if row[place] in chosen]
        identities = self.identities(chosen)
        return found + [
            (_ERA, row) for row in self.definitions.stored(_ERA) if _base(str(row[0])) in identities
        ]

    def identities(self, vhosts: Iterable[str]) -> set[str]:
        """Return the identities of the logs of vhosts."""
        chosen = set(vhosts)
        return {each for each, (vhost, _, _) in claims(self.definitions).items() if vhost in chosen}

    def logs(self) -> list[str]:
        """Return the directories of logs that belong to vhosts, or to no queue."""
        dropped = {str(row[0]) for row in self.definitions.stored(_DROPPED)}
        there = os.listdir(self.directory / QUEUES)
        return [each for each in there if _base(each) not in (*_OWN, *dropped)]

    def size_of(self, identities: set[str]) -> int:
        """Return the bytes of logs."""
        queues = self.directory / QUEUES
        return sum(
            entry.stat().st_size
            for each in os.listdir(queues)
            if _base(each) in identities
            for entry in os.scandir(queues / each)
        )

    # --- changes ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Mark it as in use."""
        self.definitions.mark(clean=False)

    def take_in(self, source: _OpenStore, vhosts: set[str], *, users: bool) -> None:
        """Commit the rows of vhosts of another store, and the records of their publishers.

        Args:
            source: the other store.
            vhosts: the names of the vhosts.
            users: whether it has the users; permissions are nothing without them.

        Raises:
            StoreError: there is something else of the same name here.
        """
        mine = {(kind, _key(kind, row)): row for kind, row in self.rows(vhosts)}
        for kind, row in source.rows(vhosts):
            if mine.get((kind, _key(kind, row)), row) != row:
                name = "', '".join(map(str, _key(kind, row)))
                raise StoreError(
                    f"{self.directory} and {source.directory} both have the {kind} '{name}', and "
                    "they differ: rename or delete one, on a running broker"
                )
            self.definitions.take_in(kind, row)
        for row in source.definitions.stored(_USER) if users else ():
            self.definitions.take_in(_USER, row)
        for position in source.published(vhosts):
            assert source.publishers is not None, "it has a position in it"
            message = source.publishers.read(position)
            if message is not None:
                if self.publishers is None:
                    self.publishers = self._store.open_log(
                        PUBLISHER_LOG, durable=True, keep_all=True
                    )
                self.publishers.append(message)
        self.commit()

    def published(self, vhosts: set[str]) -> list[int]:
        """Return the positions of the records of publishers of vhosts."""
        positions = () if self.publishers is None else _live(self.publishers)
        return [each for each in positions if vhost_of_record(self._body(each)) in vhosts]

    def leave(self, vhosts: set[str]) -> None:
        """Forget vhosts that another store has."""
        for kind, row in self.rows(vhosts):
            self.definitions.drop(kind, _key(kind, row))
        for position in self.published(vhosts):
            assert self.publishers is not None, "it has a position in it"
            self.publishers.settle(position)
        self.commit()

    def give(self, target: _OpenStore, logs: list[str]) -> None:
        """Move the directories of logs to another store."""
        for each in logs:
            os.rename(self.directory / QUEUES / each, target.directory / QUEUES / each)
        # The new names first: a log that has none for a moment would be gone with the power.
        sync_path(target.directory / QUEUES)
        sync_path(self.directory / QUEUES)

    def commit(self) -> None:
        """Write everything to the disk.

        Raises:
            OSError: the disk refuses.
        """
        while (batch := self._store.commit.gather()) is not None:
            batch.perform()
            error = batch.failed or batch.stalled
            if error is not None:
                raise error
            self._store.commit.finish(batch)

    def end(self, counts: Mapping[str, int]) -> None:
        """Close it in good order.

        Args:
            counts: the numbers of segments of logs by their identities, also of other stores.
        """
        self._store.close()
        self.commit()
        self._store.describe()
        opened = {identity: len(log.segments) for identity, log in self._store.logs.items()}
        logs, identities = set(self.logs()), self.identities(self.vhosts())
        # Those of a log that has lost its directory, too: the broker reports it.
        mine = {
            name: count
            for name, count in counts.items()
            if name in logs or _base(name) in identities
        }
        if mine:
            inventory.write(self._files, {**mine, **opened})
        self._store.shut()
        self.definitions.mark(clean=True)

    def close(self) -> None:
        """Let others use it."""
        self._store.shut()
        self.definitions.close()
        self._lock.release()


def split(data_dir: Path, count: int, placed: Mapping[str, int] | None = None) -> Moved:
    """Divide a data directory.

    Args:
        data_dir: the directory of one store.
        count: how many stores it gets.
        placed: the stores of some vhosts; the others are spread by their bytes.

    Returns:
        Where the vhosts are.

    Raises:
        OSError: the disk refuses; the same call goes on from there.
        StoreError: the directory cannot be divided; the text says why.
    """
    _check_directory(data_dir)
    given = dict(placed or {})

    def plan(stores: list[_OpenStore]) -> dict[str, int]:
        return _spread(stores[0], count, given)

    return _divide(data_dir, count, plan)


def join(data_dir: Path) -> Moved:
    """Make one store of a divided data directory; see `split`."""
    _check_directory(data_dir)
    return _divide(
        data_dir,
        1,
        lambda stores: {name: FIRST_STORE for each in stores for name in sorted(each.vhosts())},
    )


def _check_directory(data_dir: Path) -> None:
    check_whole(data_dir)
    if not (data_dir / DEFINITIONS).is_file():
        raise StoreError(f"{data_dir} is no data directory of Harebell: it has no {DEFINITIONS}")


def _divide(
    data_dir: Path, after: int, place: Callable[[list[_OpenStore]], dict[str, int]]
) -> Moved:
    """Move the vhosts to their stores.

    Raises:
        OSError: the disk refuses; the same call goes on from there.
        StoreError: the directory cannot be divided; the text says why.
    """
    try:
        return _divided(data_dir, after, place)
    except (OSError, StoreError) as error:
        # SQLite says of a full disk that it cannot be read, so the room decides, and not the error.
        free = OsFiles(str(data_dir)).free()
        size = sum(each.stat().st_size for each in data_dir.glob(f"**/{DEFINITIONS}"))
        needed = DIVISION_ROOM_BYTES + 2 * size
        if free >= needed:
            raise
        raise StoreError(
            f"the disk of {data_dir} has only {free} bytes left: make room for {needed} bytes, and "
            f"run the same command again; nothing is lost ({error})"
        ) from None


def _divided(
    data_dir: Path, after: int, place: Callable[[list[_OpenStore]], dict[str, int]]
) -> Moved:
    stores = data_dir / DIRECTORY
    with ExitStack() as stack:
        lock = DirectoryLock(stores)
        stack.callback(lock.release)
        plan = _under_way(data_dir)
        if plan is not None and plan.after != after:
            command = f"split {data_dir} {plan.after}" if plan.after > 1 else f"join {data_dir}"
            raise StoreError(f"another change did not end: run `harebell store {command}` first")
        again = plan is not None
        before = stores_of(data_dir) if plan is None else plan.before
        _check_counts(data_dir, before, after)
        opened = []
        for each in data_dirs(data_dir, max(before, after)):
            store = _OpenStore(each, again=again)
            stack.callback(store.close)
            opened.append(store)
        if len({os.stat(each.directory).st_dev for each in opened}) > 1:
            raise StoreError(f"the directories in {stores} have to be on one file system")
        if plan is None:
            vhosts = place(opened)
            logs = sorted(name for each in opened for name in each.logs())
            counts = {name: count for each in opened for name, count in each.counts.items()}
            plan = _Plan(before, after, vhosts, logs, counts)
            _write_plan(data_dir, plan)
        _move_all(opened, plan)
        _check_logs(opened, plan)
        for store in opened:
            store.end(plan.counts)
    return _finish(data_dir, plan)


def _check_counts(data_dir: Path, before: int, after: int) -> None:
    if before == after:
        raise StoreError(f"{data_dir} has {after} store{'s' if after > 1 else ''} already")
    if before > 1 and after > 1:
        raise StoreError(
            f"{data_dir} has {before} stores: make it one with `harebell store join {data_dir}` "
            "first"
        )


def _move_all(opened: list[_OpenStore], plan: _Plan) -> None:
    for store in opened:
        store.begin()
    sources = opened[: plan.before]
    for number, target in enumerate(opened, start=FIRST_STORE):
        vhosts = {name for name, store in plan.vhosts.items() if store == number}
        if number > plan.after:
            continue
        for source in sources:
            if source is target:
                continue
            target.take_in(source, vhosts, users=number > FIRST_STORE)
            identities = target.identities(vhosts)
            # What belongs to no queue goes along when the store itself goes.
            goes = plan.after < plan.before
            source.give(
                target, [each for each in source.logs() if goes or _base(each) in identities]
            )
            if goes:
                _give_quarantine(source, target)
            source.leave(vhosts)


def _give_quarantine(source: _OpenStore, target: _OpenStore) -> None:
    """Move the copies of damaged bytes; their names are those of logs, so they are unique."""
    there = source.directory / QUARANTINE
    if there.is_dir():
        (target.directory / QUARANTINE).mkdir(mode=0o700, exist_ok=True)
        for name in os.listdir(there):
            os.rename(there / name, target.directory / QUARANTINE / name)
        sync_path(target.directory / QUARANTINE)


def _check_logs(opened: list[_OpenStore], plan: _Plan) -> None:
    """Check that every log is where its vhost is.

    Raises:
        StoreError: one is not.
    """
    missing = sorted(set(plan.logs).difference(name for each in opened for name in each.logs()))
    if missing:
        raise StoreError(f"there are logs that were not moved, and are gone: {', '.join(missing)}")
    for number, store in enumerate(opened, start=FIRST_STORE):
        vhosts = {name for name, place in plan.vhosts.items() if place == number}
        foreign = store.vhosts() - vhosts
        if foreign:
            raise StoreError(f"{store.directory} still has the vhost '{min(foreign)}'")
    if plan.after == 1 and any(each.logs() for each in opened[1:]):
        raise StoreError("not all logs were moved")


def _finish(data_dir: Path, plan: _Plan) -> Moved:
    """Let brokers start again."""
    stores = data_dir / DIRECTORY
    for number in range(plan.after + 1, plan.before + 1):
        _give_trail(data_dir_of(data_dir, FIRST_STORE, number), data_dir)
        shutil.rmtree(data_dir_of(data_dir, FIRST_STORE, number), ignore_errors=True)
    write_number(data_dir, plan.after)
    (stores / DIVIDING).unlink()
    sync_path(stores)
    if plan.after == 1:
        shutil.rmtree(stores, ignore_errors=True)
    return Moved(plan.vhosts, len(plan.logs))


def _give_trail(source: Path, target: Path) -> None:
    """Move the audit trail of a store that ends; the names of its files have its number."""
    there = source / AUDIT_TRAIL
    if there.is_dir():
        (target / AUDIT_TRAIL).mkdir(mode=0o700, exist_ok=True)
        for name in os.listdir(there):
            os.rename(there / name, target / AUDIT_TRAIL / name)
        sync_path(target / AUDIT_TRAIL)


def _under_way(data_dir: Path) -> _Plan | None:
    """Return what is under way; None if nothing is.

    Raises:
        StoreError: the file about it is damaged.
    """
    path = data_dir / DIRECTORY / DIVIDING
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Plan)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError:
        raise StoreError(
            f"{path} is damaged, and says which vhosts are being moved where: restore the whole "
            "data directory from a backup"
        ) from None


def _write_plan(data_dir: Path, plan: _Plan) -> None:
    stores = data_dir / DIRECTORY
    draft = stores / f"{DIVIDING}.new"
    with open(draft, "wb") as file:
        file.write(msgspec.json.encode(plan))
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, stores / DIVIDING)
    sync_path(stores)


def _spread(store: _OpenStore, count: int, placed: Mapping[str, int]) -> dict[str, int]:
    """Return a store for each vhost, so that all have about as many bytes.

    Raises:
        StoreError: a vhost or a store that is asked for does not exist.
    """
    names = {DEFAULT_VHOST, *store.vhosts()}
    for name, number in placed.items():
        if name not in names:
            raise StoreError(f"there is no vhost '{name}' in {store.directory}")
        if not FIRST_STORE <= number <= count:
            raise StoreError(f"there is no store {number}: there are to be {count}")
        if name == DEFAULT_VHOST and number != FIRST_STORE:
            raise StoreError(f"the vhost '{DEFAULT_VHOST}' stays in store {FIRST_STORE}")
    chosen = {DEFAULT_VHOST: FIRST_STORE, **placed}
    sizes = {name: store.size_of(store.identities((name,))) for name in names}
    loads = dict.fromkeys(range(FIRST_STORE, FIRST_STORE + count), (0, 0))

    def add(name: str, number: int) -> None:
        size, vhosts = loads[number]
        loads[number] = size + sizes[name], vhosts + 1

    for name, number in chosen.items():
        add(name, number)
    for name in sorted(names - chosen.keys(), key=lambda each: (-sizes[each], each)):
        chosen[name] = min(loads, key=lambda number: (*loads[number], number))
        add(name, chosen[name])
    return chosen


def _live(log: Log) -> Iterable[int]:
    position = log.first()
    while position < log.end():
        yield position
        position = log.next(position + 1)


def _base(directory: str) -> str:
    return directory.partition("-")[0]


def _key(kind: str, row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(map(str, row[: len(TABLES[kind].key)]))

"""Imports definitions into a cluster: each owner takes the part of its store.

All parts are tried before the first one is taken in, so an invalid entry changes nothing. Users and
global parameters come first; new vhosts get their stores, and then each store its part. What stops
an import between two parts is an owner that goes away: the error says what was taken in before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from harebell.admin.catalog import DEFINITIONS
from harebell.admin.context import CommandRefused, Unavailable
from harebell.base.errors import HarebellError
from harebell.base.slices import Slices
from harebell.cluster.stores import FIRST_STORE

if TYPE_CHECKING:
    from harebell.cluster.command_wire import Call
    from harebell.cluster.stores import StoreDirectory

SHARED_SECTIONS = ("users", "global_parameters")
"""Sections that the owner of store 1 takes in, and all others get from it."""
VHOSTS = "vhosts"
"""The section with the vhosts themselves."""
_IN_VHOSTS = (
    *("permissions", "topic_permissions", "parameters", "policies", "queues", "exchanges"),
    "bindings",
)
_TRY = "try"
_ARGUMENT = "definitions"

Document = dict[str, Any]


class Parts(Protocol):
    """The part of `ClusterCommands` that an import uses."""

    def run_at(self, store: int, call: Call, vhost: str = "") -> Slices[Any]:
        """Run a command at the owner of a store."""

    def durably(self, store: int, call: Call, vhost: str = "") -> Slices[Any]:
        """Run a command at the owner of a store, and wait until its changes are on disk."""

    def placed(self, vhost: str) -> Slices[int]:
        """Return the store of a vhost, which is chosen if the vhost is a new one."""


def import_parts(commands: Parts, directory: StoreDirectory, call: Call) -> Slices[Any]:
    """Run `definitions.import` or `definitions.try` on a document with entries of all vhosts.

    Args:
        commands: runs the parts.
        directory: knows which store each vhost is in.
        call: the command.

    Raises:
        CommandRefused: an entry is invalid.
        Unavailable: a store that has a part has no owner now.
    """
    document: Document = call.arguments[_ARGUMENT]
    own = directory.number
    shared = {name: document[name] for name in SHARED_SECTIONS if name in document}
    parts = yield from parts_of(document, own, directory.store_of)
    for store in {*parts, *([FIRST_STORE] if shared else [])} - {own}:
        if directory.address_of(store) is None:
            raise Unavailable(f"store {store} has no owner now, and nothing was imported")
    trial = call._replace(command=DEFINITIONS.commands[_TRY], reads=True)
    about = _about(document)
    if _has_new_vhosts(document, directory):
        # Any owner may get a new one: one that does not answer has to be known before.
        serving = filter(directory.address_of, range(FIRST_STORE, FIRST_STORE + directory.stores))
        parts = {own: about, **dict.fromkeys(serving, about), **parts}
    for store, part in (parts or {own: about}).items():
        # Permissions may be those of users in the same document.
        whole = {**part, **shared}
        tried = commands.run_at(store, trial._replace(arguments={_ARGUMENT: whole}))
        try:
            yield from tried
        except Unavailable as error:
            raise Unavailable(f"{error}; nothing was imported") from None
    if call.command is trial.command:
        return {}
    done: list[str] = []
    answers = []
    try:
        if shared:
            first = {**about, **shared}
            answers.append((yield from commands.durably(FIRST_STORE, _with(call, first))))
            done.append("users and global parameters")
        yield from _place(commands, document)
        parts = yield from parts_of(document, own, directory.store_of)
        for store, part in parts.items():
            answers.append((yield from commands.durably(store, _with(call, part))))
            done.append(f"the part of store {store}")
    except HarebellError as error:
        if not done:
            raise
        kind = Unavailable if isinstance(error, Unavailable) else CommandRefused
        raise kind(f"{error}. Imported before: {', '.join(done)}") from None
    return _summed(answers)


def _with(call: Call, document: Document) -> Call:
    return call._replace(arguments={_ARGUMENT: document})


def _has_new_vhosts(document: Document, directory: StoreDirectory) -> bool:
    """Whether a document has vhosts that have no store yet."""
    entries = document.get(VHOSTS)
    if not isinstance(entries, list):
        return False  # it is refused, or there is none
    names = [each.get("name") for each in entries if isinstance(each, dict)]
    return any(isinstance(name, str) and directory.store_of(name) is None for name in names)


def _about(document: Document) -> Document:
    """Return what a document says beside its sections, such as a version."""
    sections = (*SHARED_SECTIONS, VHOSTS, *_IN_VHOSTS)
    return {name: value for name, value in document.items() if name not in sections}


def _place(commands: Parts, document: Document) -> Slices[None]:
    """Choose a store for each new vhost."""
    for entry in document.get(VHOSTS, ()):
        yield from commands.placed(entry["name"])


def parts_of(
    document: Document, own: int, store_of: Callable[[str], int | None]
) -> Slices[dict[int, Document]]:
    """Return the part of each store, without the sections that all stores share.

    Args:
        document: the definitions.
        own: the store that gets what has no store yet. There an entry of a vhost that does not
            exist is refused, too.
        store_of: returns the store of a vhost; None if it has none.
    """
    about = _about(document)
    parts: dict[int, Document] = {}
    for section in (VHOSTS, *_IN_VHOSTS):
        entries = document.get(section)
        if entries is None:
            continue
        if not isinstance(entries, list):
            parts.setdefault(own, {**about})[section] = entries
            continue
        name = "name" if section == VHOSTS else "vhost"
        for entry in entries:
            vhost = entry.get(name) if isinstance(entry, dict) else None
            store = store_of(vhost) if isinstance(vhost, str) else None
            parts.setdefault(store or own, {**about}).setdefault(section, []).append(entry)
            yield
    return dict(sorted(parts.items()))


def _summed(answers: list[Any]) -> dict[str, Any]:
    """Return the answer for all parts."""
    from harebell.admin.definitions.importer import Imported

    counts: Counter[str] = Counter()
    for each in answers:
        counts.update(each["counts"])
    whole = Imported(
        dict(counts),
        [line for each in answers for line in each["left_out"]],
        [line for each in answers for line in each["ignored"]],
    )
    return {"imported": str(whole), **whole._asdict()}

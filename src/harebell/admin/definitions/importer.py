"""Import a definitions document atomically.

The import runs on an in-memory copy of the broker first, which refuses the same entries as the real
one. As in RabbitMQ, users, permissions, policies and parameters replace those of the same name, and
existing queues, exchanges and bindings are not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import msgspec

from harebell.admin.definitions import topology, users
from harebell.admin.definitions.entries import (
    BindingEntry,
    DefinitionsError,
    ExchangeEntry,
    GlobalParameterEntry,
    ImportTarget,
    ParameterEntry,
    PermissionEntry,
    PolicyEntry,
    QueueEntry,
    TopicPermissionEntry,
    UserEntry,
    VHostEntry,
    entries,
    title,
)
from harebell.admin.definitions.exporter import export_in_slices
from harebell.auth.password_hashes import SHA256
from harebell.auth.permissions import PatternError
from harebell.auth.users import Users
from harebell.base.errors import HarebellError
from harebell.base.gauge import Gauge
from harebell.base.slices import Slices, at_once
from harebell.front.convert import EDITOR, headers_of
from harebell.model.broker import Broker
from harebell.model.settings.policies import Policies
from harebell.store.log.memory import MemoryStore
from harebell.wire.v09.fields import encode_table

E = TypeVar("E", bound=msgspec.Struct)
_OLD_HASHES = ("2.", "3.0.", "3.1.", "3.2.", "3.3.", "3.4.", "3.5.")
"""Versions of RabbitMQ whose password hashes are MD5 if no algorithm is given."""
_SECTIONS = (
    *("users", "vhosts", "permissions", "topic_permissions", "parameters", "global_parameters"),
    *("policies", "queues", "exchanges", "bindings"),
)


def parse(text: bytes) -> dict[str, Any]:
    """Parse a document of definitions.

    Raises:
        DefinitionsError: the text is not valid JSON or not a definitions document.
    """
    try:
        document = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DefinitionsError(f"the definitions are no JSON object: {error}") from None
    return checked_document(document)


def checked_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document that was decoded.

    Raises:
        DefinitionsError: it is not a definitions document.
    """
    if not any(section in document for section in _SECTIONS):
        raise DefinitionsError(f"the definitions have none of the sections {', '.join(_SECTIONS)}")
    return document


class Imported(NamedTuple):
    """The result of an import.

    Args:
        counts: imported entries per section, including those that existed already.
        left_out: one sentence for each binding whose source or destination does not exist. RabbitMQ
            exports such bindings, because it omits internal exchanges, and skips them on import.
        ignored: one sentence for each setting that was stored but has no effect, such as an
            unknown setting of a policy.
    """

    counts: dict[str, int]
    left_out: list[str]
    ignored: list[str]

    def __str__(self) -> str:
        named = [(count, name.replace("_", " ")) for name, count in self.counts.items() if count]
        return ", ".join(f"{count} {name}" for count, name in named) or "nothing"


def import_definitions(
    target: ImportTarget, given: dict[str, Any], vhost: str | None = None
) -> Imported:
    """Import definitions in one call; see `import_in_slices`."""
    return at_once(import_in_slices(target, given, vhost))


def import_in_slices(
    target: ImportTarget, given: dict[str, Any], vhost: str | None = None
) -> Slices[Imported]:
    """Import definitions into a broker.

    Args:
        target: the broker.
        given: the document.
        vhost: import only entries inside vhosts, and all of them into this vhost.

    Raises:
        DefinitionsError: an entry is invalid. Nothing was changed, unless a client has declared
            something that contradicts the entry after the trial.
    """
    yield from try_in_slices(target, given, vhost)
    try:
        return (yield from _Import(target, given, vhost).run())
    except DefinitionsError as error:
        raise DefinitionsError(
            f"{error}. It could be had when the import began, so the entries before it are taken in"
        ) from None


def try_in_slices(
    target: ImportTarget, given: dict[str, Any], vhost: str | None = None
) -> Slices[None]:
    """Import definitions into a copy of a broker, which is dropped.

    Args:
        target: the broker.
        given: the document.
        vhost: import only entries inside vhosts, and all of them into this vhost.

    Raises:
        DefinitionsError: an entry is invalid.
    """
    trial = _trial(target.broker.default_queue_type)
    there = yield from export_in_slices(target)
    yield from _Import(trial, there, None).run()
    trial.users.complaint = target.users.complaint
    ceilings = target.broker.ceilings
    lacking = ceilings.beyond(trial.broker.ceilings)
    trial.broker.limit(ceilings.copy())
    trial.broker.ceilings.elsewhere = lambda: lacking
    yield from _Import(trial, given, vhost).run()


def try_on_new(
    documents: Iterable[tuple[str, dict[str, Any]]],
    there: dict[str, Any],
    default_queue_type: str,
    complaint: Callable[[str, str], str],
) -> None:
    """Import documents into a new broker in memory, which is dropped.

    Args:
        documents: each with its name, for errors.
        there: definitions that the broker has before.
        default_queue_type: the type of queues that name none; "" for classic ones.
        complaint: returns what is wrong with a new password of a user; "" if nothing is.

    Raises:
        DefinitionsError: an entry is invalid.
    """
    trial = _trial(default_queue_type)
    at_once(_Import(trial, there, None).run())
    trial.users.complaint = complaint
    for name, document in documents:
        with not_loaded(name):
            at_once(_Import(trial, document, None).run())


@contextmanager
def not_loaded(name: str) -> Iterator[None]:
    """Add the name of a source to errors."""
    try:
        yield
    except DefinitionsError as error:
        raise DefinitionsError(f"the definitions {name} cannot be loaded: {error}") from None


def _trial(default_queue_type: str) -> ImportTarget:
    """Return an empty broker in memory."""
    store = MemoryStore(Gauge(), encode_table)
    broker = Broker(store, Gauge(), headers_of, EDITOR, default_queue_type=default_queue_type)
    # No random salts are needed: there are no logins to the trial broker.
    return ImportTarget(broker, Users(bytes, algorithm=SHA256), store.definitions)


@contextmanager
def _naming(section: str, entry: Any) -> Iterator[None]:
    """Add the section and the name of an entry to errors."""
    try:
        yield
    except DefinitionsError:
        raise
    except (HarebellError, PatternError, ValueError, TypeError) as error:
        raise DefinitionsError(f"{section}: {title(entry)}: {error}") from None


class _Import:
    """The import of one document into one broker.

    Args:
        target: the broker.
        given: the document.
        vhost: the vhost for all entries; None for the vhosts that the entries name.
    """

    def __init__(self, target: ImportTarget, given: dict[str, Any], vhost: str | None) -> None:
        self._target = target
        self._given = given
        self._vhost = vhost
        self._taken: Counter[str] = Counter()
        self._left_out: list[str] = []
        self._ignored: list[str] = []

    def run(self) -> Slices[Imported]:
        """Import all sections in RabbitMQ's order."""
        target = self._target
        if self._vhost is None:
            version = str(self._given.get("rabbit_version", self._given.get("rabbitmq_version")))
            md5 = version.startswith(_OLD_HASHES)
            yield from self._each(
                "users", UserEntry, lambda each: users.import_user(target, each, md5=md5)
            )
            yield from self._each(
                "vhosts", VHostEntry, lambda each: topology.import_vhost(target, each)
            )
            yield from self._check_room()
            yield from self._each(
                "permissions", PermissionEntry, lambda each: users.import_permission(target, each)
            )
            yield from self._each(
                "topic_permissions",
                TopicPermissionEntry,
                lambda each: users.import_topic_permission(target, each),
            )
            yield from self._each(
                "global_parameters",
                GlobalParameterEntry,
                lambda each: topology.import_global_parameter(target, each),
            )
        else:
            yield from self._check_room()
        broker = target.broker
        yield from self._rule()
        yield from self._each(
            "queues", QueueEntry, lambda each: topology.import_queue(broker, each)
        )
        yield from self._each(
            "exchanges", ExchangeEntry, lambda each: topology.import_exchange(broker, each)
        )
        yield from self._each("bindings", BindingEntry, self._bind)
        return Imported(
            {section: self._taken[section] for section in _SECTIONS}, self._left_out, self._ignored
        )

    def _rule(self) -> Slices[None]:
        """Import parameters and policies, which are applied to what is there when all are taken."""
        broker = self._target.broker
        held: dict[str, Policies] = {}

        def hold(vhost: str) -> None:
            if vhost in broker.vhosts and vhost not in held:
                held[vhost] = broker.vhosts[vhost].policies
                held[vhost].hold()

        def parameter(entry: ParameterEntry) -> list[str]:
            hold(entry.vhost)
            return topology.import_parameter(broker, entry)

        def policy(entry: PolicyEntry) -> list[str]:
            hold(entry.vhost)
            return topology.import_policy(broker, entry)

        try:
            yield from self._each("parameters", ParameterEntry, parameter)
            yield from self._each("policies", PolicyEntry, policy)
            while held:
                held.popitem()[1].release()
                yield
        finally:
            for policies in held.values():
                policies.release()

    def _bind(self, entry: BindingEntry) -> None:
        missing = topology.missing_end(self._target.broker, entry)
        if missing:
            self._left_out.append(f"bindings: {title(entry)}: there is no {missing}")
            self._taken["bindings"] -= 1
        else:
            topology.import_binding(self._target.broker, entry)

    def _each(
        self,
        section: str,
        kind: type[E],
        take: Callable[[E], list[str] | Slices[list[str]] | None],
    ) -> Slices[None]:
        inside = "vhost" in kind.__struct_fields__
        for entry in entries(self._given, section, kind, self._vhost if inside else None):
            with _naming(section, entry):
                taken = take(entry)
                sentences = (yield from taken) if isinstance(taken, Generator) else taken
                for sentence in sentences or ():
                    self._ignored.append(f"{section}: {title(entry)}: {sentence}")
            self._taken[section] += 1
            yield

    def _check_room(self) -> Slices[None]:
        """Check the queue limits of all vhosts before the first queue is declared."""
        news: Counter[str] = Counter()
        broker = self._target.broker
        for entry in entries(self._given, "queues", QueueEntry, self._vhost):
            vhost = broker.vhosts.get(entry.vhost)
            news[entry.vhost] += vhost is not None and entry.name not in vhost.queues
            yield
        for name, count in news.items():
            topology.check_room(broker, name, count)

"""Make a queue of a log that belongs to none: its definition was lost, or never stored."""

from __future__ import annotations

from typing import Any

from harebell.base.errors import StoreError
from harebell.base.limits import NAME_BYTES
from harebell.base.ports import Files
from harebell.store.check import Holding, Survey
from harebell.store.definitions import SqliteDefinitions

_FIRST_VHOST = "/"
_PRIORITIES = "x-max-priority"
_TYPE = "x-queue-type"
_CLASSIC = "classic"
_PRIORITY = "priority"


def adopt(
    files: Files, definitions: SqliteDefinitions, identity: str, vhost: str, name: str, kind: str
) -> int:
    """Store a durable queue for an existing log.

    Args:
        files: the data directory, which no broker uses.
        definitions: those of the directory, which get the row of the queue.
        identity: of the log.
        vhost: the name of an existing vhost.
        name: of the queue, which must be free.
        kind: classic, quorum or stream. A log with priorities becomes a priority queue.

    Returns:
        How many messages the queue has.

    Raises:
        StoreError: the log belongs to a queue, or the name cannot be used.
        OSError: the disk refuses.
    """
    _check_name(definitions, vhost, name)
    survey = Survey(files, definitions, was_clean=definitions.was_clean)
    log = next((each for each in survey.unclaimed() if each.identity == identity), None)
    survey.close()
    if log is None:
        raise StoreError(
            f"there is no log {identity} without a queue: `harebell store check` shows all"
        )
    stored, arguments = _kind_of(log, kind)
    row = {"kind": stored, "identity": identity, "auto_delete": False, "arguments": arguments}
    definitions.put("queue", (vhost, name), row)
    definitions.write(definitions.take())
    return log.messages


def _check_name(definitions: SqliteDefinitions, vhost: str, name: str) -> None:
    vhosts = {_FIRST_VHOST, *(key[0] for key, _ in definitions.load("vhost"))}
    if vhost not in vhosts:
        raise StoreError(f"there is no vhost '{vhost}': choose one of {', '.join(sorted(vhosts))}")
    if (vhost, name) in {key for key, _ in definitions.load("queue")}:
        raise StoreError(f"there is a queue '{name}' in vhost '{vhost}' already: choose another")
    if name.startswith("amq.") or len(name.encode()) > NAME_BYTES:
        raise StoreError(
            f"'{name}' cannot be the name of a queue: it has at most {NAME_BYTES} bytes and does "
            "not begin with 'amq.'"
        )


def _kind_of(holding: Holding, kind: str) -> tuple[str, dict[str, Any]]:
    """Return the kind of the queue as it is stored, and its arguments."""
    levels = [int(log.partition("-")[2]) for log in holding.logs if "-" in log]
    if levels and holding.identity not in holding.logs:
        return _PRIORITY, {_PRIORITIES: max(1, *levels)}
    return kind, {} if kind == _CLASSIC else {_TYPE: kind}

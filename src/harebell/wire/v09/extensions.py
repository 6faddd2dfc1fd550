"""Harebell's own classes of AMQP 0-9-1, in the range that is left to implementations.

Each class has a file of its own with its table, which is laid over the version here. The broker
announces them in the server property `harebell`, a table of names and versions; a peer that does
not use them never gets one of their methods.

    id       class       file
    0xF000   lease       durable claims on a queue's messages
    0xF001   bulk        ranges of a log as Arrow
    0xF002   stage       batches that are published together, once
    0xF003   publisher   publishers whose repeats are dropped
    0xF004   query       what queries report about themselves
    0xF005   history     which eras positions and claim numbers belong to
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harebell.wire.v09 import bulk, history, lease, publisher, query, stage

FIRST_CLASS = 0xF000
"""Classes from here on belong to implementations; the standard's own are far below."""

PROPERTY = "harebell"
"""The server property that announces the classes."""


class Extension(NamedTuple):
    """One class of Harebell's own.

    Args:
        name: the name of the class: `lease` for lease.open.
        version: its version, which rises when a method changes its meaning or fields.
        table: its methods, see `harebell.wire.v09.spec`.
    """

    name: str
    version: int
    table: str


EXTENSIONS: tuple[Extension, ...] = (
    Extension(lease.NAME, lease.VERSION, lease.TABLE),
    Extension(bulk.NAME, bulk.VERSION, bulk.TABLE),
    Extension(stage.NAME, stage.VERSION, stage.TABLE),
    Extension(publisher.NAME, publisher.VERSION, publisher.TABLE),
    Extension(query.NAME, query.VERSION, query.TABLE),
    Extension(history.NAME, history.VERSION, history.TABLE),
)
"""All classes of Harebell's own."""

TABLES = tuple(extension.table for extension in EXTENSIONS)

VERSIONS: Mapping[str, int] = {extension.name: extension.version for extension in EXTENSIONS}
"""The versions of the classes by name, as the server property has them."""


def announced(server_properties: Mapping[str, Any]) -> dict[str, int]:
    """Return the versions of the classes that a broker announces; empty if it is not Harebell."""
    versions = server_properties.get(PROPERTY)
    if not isinstance(versions, dict):
        return {}
    return {name: version for name, version in versions.items() if type(version) is int}

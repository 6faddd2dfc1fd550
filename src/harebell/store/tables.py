"""The tables of the definitions: their columns, and what each version added.

    version 1    the beginning
    version 2    metadata of vhosts, hashing algorithm and limits of users, durability, topic
                 permissions, global parameters
    version 3    leases

A column that came later has a default, which is what an older database means by not having it. So
a database of any earlier version is read as it is, and brought up to date with ALTER TABLE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

VERSION = 3
_COLUMNS_SINCE = 2
"""The version that the columns with defaults came with."""
TEXT, NUMBER, FLAG, BLOB = "TEXT", "INTEGER", "BOOLEAN", "BLOB"


class Table(NamedTuple):
    """Where definitions of one kind are kept.

    Args:
        name: of the table.
        key: the columns of the key, all texts.
        fields: the other columns and their types; a BLOB is a table of arguments.
        added: the defaults of the columns that came after the table itself, all in version 2.
        since: the version that the table came with.
    """

    name: str
    key: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    added: Mapping[str, str | int] = {}
    since: int = 1

    def make(self) -> str:
        """The statement that makes it."""
        columns = ["number INTEGER PRIMARY KEY"]
        columns += [f"{name} {TEXT} NOT NULL" for name in self.key]
        columns += [self._column(name, kind) for name, kind in self.fields]
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, UNIQUE ({', '.join(self.key)}))"

    def _column(self, name: str, kind: str) -> str:
        default = f" DEFAULT {_literal(self.added[name])}" if name in self.added else ""
        return f"{name} {kind} NOT NULL{default}"

    def extend(self) -> list[str]:
        """The statements that add the columns that came later."""
        return [
            f"ALTER TABLE {self.name} ADD COLUMN {self._column(name, kind)}"
            for name, kind in self.fields
            if name in self.added
        ]

    def put(self) -> str:
        """The statement that adds or replaces a row; a replaced one keeps its number."""
        names = [*self.key, *(name for name, _ in self.fields)]
        news = ", ".join(f"{name} = excluded.{name}" for name, _ in self.fields)
        return " ".join(
            (
                f"INSERT INTO {self.name} ({', '.join(names)})",
                f"VALUES ({', '.join('?' * len(names))}) ON CONFLICT ({', '.join(self.key)}) DO",
                f"UPDATE SET {news}" if news else "NOTHING",
            )
        )

    def drop(self) -> str:
        """The statement that removes a row."""
        wanted = " AND ".join(f"{name} = ?" for name in self.key)
        return f"DELETE FROM {self.name} WHERE {wanted}"  # noqa: S608  # names from below only

    def load(self, version: int) -> str:
        """The statement that reads all rows.

        Args:
            version: of the database; what that does not have is read as the defaults.
        """
        late = self.added if version < _COLUMNS_SINCE else {}
        columns = [
            _literal(late[name]) if name in late else name
            for name in (*self.key, *(name for name, _ in self.fields))
        ]
        return f"SELECT {', '.join(columns)} FROM {self.name} ORDER BY number"  # noqa: S608


def _literal(value: str | int) -> str:
    """A default as SQL; ours have no quotes."""
    return str(value) if isinstance(value, int) else f"'{value}'"


_BINDING_ENDS = ("vhost", "source", "destination_type", "destination", "routing_key")
TABLES = {
    "vhost": Table(
        "vhosts",
        ("name",),
        (
            ("description", TEXT),
            ("tags", TEXT),
            ("default_queue_type", TEXT),
            ("durability", TEXT),
            ("tracing", FLAG),
        ),
        {"description": "", "tags": "", "default_queue_type": "", "durability": "", "tracing": 0},
    ),
    "user": Table(
        "users",
        ("name",),
        (
            ("password_hash", TEXT),
            ("tags", TEXT),
            ("loopback_only", FLAG),
            ("hashing_algorithm", TEXT),
            ("max_connections", NUMBER),
            ("max_channels", NUMBER),
            ("verifiers", TEXT),
        ),
        {
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "max_connections": -1,
            "max_channels": -1,
            "verifiers": "",
        },
    ),
    "permission": Table(
        "permissions",
        ("vhost", "user"),
        (("configure", TEXT), ("write", TEXT), ("read", TEXT)),
    ),
    "topic_permission": Table(
        "topic_permissions",
        ("vhost", "user", "exchange"),
        (("write", TEXT), ("read", TEXT)),
        since=2,
    ),
    "exchange": Table(
        "exchanges",
        ("vhost", "name"),
        (("type", TEXT), ("auto_delete", FLAG), ("internal", FLAG), ("arguments", BLOB)),
    ),
    "queue": Table(
        "queues",
        ("vhost", "name"),
        (("kind", TEXT), ("identity", TEXT), ("auto_delete", FLAG), ("arguments", BLOB)),
    ),
    "binding": Table("bindings", (*_BINDING_ENDS, "arguments_key"), (("arguments", BLOB),)),
    "policy": Table(
        "policies",
        ("vhost", "name"),
        (("pattern", TEXT), ("apply_to", TEXT), ("priority", NUMBER), ("definition", BLOB)),
    ),
    "parameter": Table("parameters", ("vhost", "component", "name"), (("value", BLOB),)),
    "global_parameter": Table("global_parameters", ("name",), (("value", BLOB),), since=2),
    "offset": Table("offsets", ("vhost", "queue", "consumer"), (("position", NUMBER),)),
    "lease": Table(
        "leases", ("vhost", "queue", "name"), (("identity", TEXT), ("state", BLOB)), since=3
    ),
    "dropped": Table("dropped", ("identity",), ()),
}
"""Every kind of definition."""


def upgrades(version: int) -> list[str]:
    """The statements that bring a database of an earlier version up to date; none for our own."""
    if version >= VERSION:
        return []
    made = [table.make() for table in TABLES.values() if table.since > version]
    old = [
        table for table in TABLES.values() if version < _COLUMNS_SINCE and table.since <= version
    ]
    return [*made, *(statement for table in old for statement in table.extend())]

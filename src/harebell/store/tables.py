"""The tables of the definitions: their columns, and what each format version added.

    version 1    the first format
    version 2    metadata of vhosts, hashing algorithm and limits of users, durability, topic
                 permissions, global parameters
    version 3    leases
    version 4    a checksum in every row: SQLite does not notice a flipped bit in a name
    version 5    eras of logs

Every row ends with its checksum:

    crc     CRC-32C of the name of the table, the key and the other columns but `number`, each as
            length in bytes u64, big-endian | bytes (numbers and flags as text)

Columns added later have a default, which is the value for databases without the column. So a
database of any earlier version can be read as it is, and is upgraded with ALTER TABLE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harebell.kernels.records import crc32c

VERSION = 5
_COLUMNS_SINCE = 2
"""The version that added the columns with defaults."""
_CHECKED_SINCE = 4
"""The version that added the checksums."""
_CHECK = "crc"
_UNCHECKED = -1
_LENGTH_BYTES = 8
TEXT, NUMBER, FLAG, BLOB = "TEXT", "INTEGER", "BOOLEAN", "BLOB"


class Table(NamedTuple):
    """The table for definitions of one kind.

    Args:
        name: the name of the table.
        key: the columns of the key, all texts.
        fields: the other columns and their types; a BLOB is a table of arguments.
        added: the defaults of the columns that were added after the table, all in version 2.
        since: the version that added the table.
    """

    name: str
    key: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    added: Mapping[str, str | int] = {}
    since: int = 1

    def make(self) -> str:
        """Return the CREATE TABLE statement."""
        columns = ["number INTEGER PRIMARY KEY"]
        columns += [f"{name} {TEXT} NOT NULL" for name in self.key]
        columns += [self._column(name, kind) for name, kind in self.fields]
        columns.append(_check_column())
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, UNIQUE ({', '.join(self.key)}))"

    def _column(self, name: str, kind: str) -> str:
        default = f" DEFAULT {_literal(self.added[name])}" if name in self.added else ""
        return f"{name} {kind} NOT NULL{default}"

    def extend(self) -> list[str]:
        """Return the statements that add the later columns."""
        return [
            f"ALTER TABLE {self.name} ADD COLUMN {self._column(name, kind)}"
            for name, kind in self.fields
            if name in self.added
        ]

    def put(self) -> str:
        """Return the statement that adds or replaces a row; a replaced row keeps its number."""
        names = [*self.columns(), _CHECK]
        news = ", ".join(f"{name} = excluded.{name}" for name in names[len(self.key) :])
        return " ".join(
            (
                f"INSERT INTO {self.name} ({', '.join(names)})",
                f"VALUES ({', '.join('?' * len(names))}) ON CONFLICT ({', '.join(self.key)}) DO",
                f"UPDATE SET {news}",
            )
        )

    def drop(self) -> str:
        """Return the statement that removes a row."""
        wanted = " AND ".join(f"{name} = ?" for name in self.key)
        return f"DELETE FROM {self.name} WHERE {wanted}"  # noqa: S608  # names from below only

    def load(self, version: int) -> str:
        """Return the statement that reads all rows, each followed by its checksum.

        Args:
            version: the version of the database; columns that it lacks are read as defaults.
        """
        late = self.added if version < _COLUMNS_SINCE else {}
        columns = [_literal(late[name]) if name in late else name for name in self.columns()]
        columns.append(_CHECK if version >= _CHECKED_SINCE else str(_UNCHECKED))
        return f"SELECT {', '.join(columns)} FROM {self.name} ORDER BY number"  # noqa: S608

    def columns(self) -> list[str]:
        """Return the names of the key's columns and of the fields."""
        return [*self.key, *(name for name, _ in self.fields)]

    def checksum(self, row: Sequence[Any]) -> int:
        """Return the CRC-32C of the name of the table, the key and the fields of a row.

        Args:
            row: key and fields as stored.
        """
        data = bytearray()
        for value in (self.name, *row):
            part = value if isinstance(value, bytes) else _text(value).encode("utf-8", _ANY)
            # With its length: otherwise bytes could move from one column to the next unnoticed.
            data += len(part).to_bytes(_LENGTH_BYTES) + part
        return crc32c(bytes(data))

    def is_whole(self, row: Sequence[Any], crc: Any, version: int) -> bool:
        """True if a row is what was written; always True for versions without checksums."""
        return version < _CHECKED_SINCE or crc == self.checksum(row)

    def check_all(self, link: Any) -> None:
        """Store the checksum of every row during an upgrade."""
        query = f"SELECT number, {', '.join(self.columns())} FROM {self.name}"  # noqa: S608
        put = f"UPDATE {self.name} SET {_CHECK} = ? WHERE number = ?"  # noqa: S608
        rows = link.execute(query).fetchall()
        link.executemany(put, [(self.checksum(row[1:]), row[0]) for row in rows])


def _check_column() -> str:
    return f"{_CHECK} {NUMBER} NOT NULL DEFAULT {_UNCHECKED}"


_ANY = "surrogatepass"


def _text(value: Any) -> str:
    """Return a text, number or flag as text; other types are damage, which `load` reports."""
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, int) else repr(value)


def _literal(value: str | int) -> str:
    """Return a default as SQL; defaults contain no quotes."""
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
    "era": Table("eras", ("identity",), (("list", TEXT),), since=5),
    "dropped": Table("dropped", ("identity",), ()),
}
"""The tables by kind of definition."""


def statements() -> dict[tuple[str, bool], str]:
    """Return the statement by kind of definition, and whether it puts or drops a row."""
    puts = {(kind, True): table.put() for kind, table in TABLES.items()}
    return puts | {(kind, False): table.drop() for kind, table in TABLES.items()}


def upgrades(version: int) -> list[str]:
    """Return the statements that upgrade a database of an earlier version."""
    if version >= VERSION:
        return []
    made = [table.make() for table in TABLES.values() if table.since > version]
    old = [
        table for table in TABLES.values() if version < _COLUMNS_SINCE and table.since <= version
    ]
    return [*made, *(statement for table in old for statement in table.extend()), *_checks(version)]


def _checks(version: int) -> Iterator[str]:
    """Yield the statements that add checksums to the tables of an older version."""
    for table in TABLES.values():
        if version < _CHECKED_SINCE and table.since <= version:
            yield f"ALTER TABLE {table.name} ADD COLUMN {_check_column()}"

"""One key of the configuration, as its declaration in `harebell.config.settings` describes it.

A key is a field of `Config` with an annotation such as

    heartbeat: Annotated[int, whole(0, 65_535), Reload.CONNECTIONS, RabbitMQ("heartbeat"),
        "Seconds between heartbeats that the broker proposes; 0 proposes none."] = 60

that is: the type, the reader, what a reload does, the names in `rabbitmq.conf`, and the help.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Any

import msgspec

from harebell.config.values import Reader

PREFIX = "HAREBELL_"


class Reload(Enum):
    """The part of a running broker that takes a new value at a reload (SIGHUP, `config reload`).

    A key without one keeps its value until a restart.
    """

    AT_USE = auto()
    """None: the value is read from the configuration whenever it is used."""
    LOG = auto()
    TLS = auto()
    USERS = auto()
    CONNECTIONS = auto()
    STAGES = auto()
    HTTP_API = auto()
    HTTP_CONNECTIONS = auto()
    METRICS = auto()
    CEILINGS = auto()
    MEMORY = auto()
    DISK = auto()


class RabbitMQ:
    """Names the keys of `rabbitmq.conf` whose values the reader of this key reads as they are.

    Args:
        *keys: such as `ssl_options.certfile`; keys that need a conversion are in `rabbitmq_keys`.
    """

    def __init__(self, *keys: str) -> None:
        self.keys = keys


class Alias(str):
    """Another name of the key in the TOML file and in the environment."""

    __slots__ = ()


class Secret:
    """Marks a key without a flag, because other users can read command lines."""


SECRET = Secret()


class Setting(msgspec.Struct, frozen=True):
    """One configuration key.

    Args:
        name: the key in the TOML file; variable and flag are derived from it.
        read: parses the value, or raises ValueError with the allowed values.
        help: one line for `--help` and the documentation.
        secret: true if there is no flag, because other users can read command lines.
        reload: the part of a running broker that takes a new value; None if it needs a restart.
        rabbitmq: keys of `rabbitmq.conf` with the same values.
        alias: another name in the TOML file and the environment; "" for none.
    """

    name: str
    read: Reader
    help: str
    secret: bool
    reload: Reload | None
    rabbitmq: tuple[str, ...]
    alias: str

    @property
    def reloads(self) -> bool:
        """Return whether a running broker takes a new value."""
        return self.reload is not None

    @property
    def variable(self) -> str:
        """Return the name of the environment variable."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str | None:
        """Return the name of the flag; None for a secret."""
        return None if self.secret else "--" + self.name.replace("_", "-")


def declared(name: str, annotation: Any, output: str = "") -> Setting:
    """Return the setting that the annotation of a field of `Config` declares.

    Args:
        name: the field.
        annotation: its annotation, evaluated: `Annotated` with a reader, a help and marks.
        output: stands for `{output}` in the help.
    """
    given: dict[str, Any] = {"secret": False, "reload": None, "rabbitmq": (), "alias": ""}
    for mark in _marks(annotation):
        if isinstance(mark, Reload):
            given["reload"] = mark
        elif isinstance(mark, RabbitMQ):
            given["rabbitmq"] = mark.keys
        elif isinstance(mark, Alias):
            given["alias"] = mark
        elif isinstance(mark, str):
            given["help"] = mark.replace("{output}", output)
        elif mark is SECRET:
            given["secret"] = True
        else:
            given["read"] = mark
    return Setting(name, **given)


def _marks(annotation: Any) -> Iterator[Any]:
    """Yield what `Annotated` adds to a type or to a member of it, such as `Port | None`."""
    for member in getattr(annotation, "__args__", ()):
        yield from _marks(member)
    yield from getattr(annotation, "__metadata__", ())

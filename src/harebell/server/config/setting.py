"""One row of the table of configuration keys."""

from __future__ import annotations

from dataclasses import dataclass

from harebell.server.config.values import Reader

PREFIX = "HAREBELL_"


@dataclass(frozen=True, slots=True)
class Setting:
    """One configuration key.

    Args:
        name: the key in the TOML file; variable and flag are derived from it.
        read: parses the value, or raises ValueError with the allowed values.
        help: one line for `--help` and the documentation.
        secret: true if there is no flag, because other users can read command lines.
        reloads: true if a running broker takes a new value (SIGHUP, `harebell config reload`).
    """

    name: str
    read: Reader
    help: str
    secret: bool = False
    reloads: bool = False

    @property
    def variable(self) -> str:
        """Return the name of the environment variable."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str | None:
        """Return the name of the flag; None for a secret."""
        return None if self.secret else "--" + self.name.replace("_", "-")

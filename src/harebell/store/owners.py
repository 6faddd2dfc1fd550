"""Which queue or exchange a log belongs to, by the identity of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.ports import EXCHANGE_LOG, Definitions


def claims(definitions: Definitions) -> dict[str, tuple[str, str, str]]:
    """Return the owner of each identity: vhost, name, kind."""
    claims = {}
    for (vhost, name), fields in definitions.load("queue"):
        row: Mapping[str, Any] = fields
        claims[str(row["identity"])] = (vhost, name, str(row["kind"]))
    for (vhost, name), fields in definitions.load("exchange"):
        identity = fields["arguments"].get(EXCHANGE_LOG)
        if isinstance(identity, str):
            claims[identity] = (vhost, name, "exchange")
    return claims


class Owners:
    """Names the owners of damaged logs at a start.

    Args:
        definitions: what is declared; read when the first log is named.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._claims: dict[str, tuple[str, str, str]] | None = None

    def __call__(self, identity: str) -> str:
        """Return the owner of a log, for the begin of a line; "" if none is known."""
        if self._claims is None:
            self._claims = claims(self._definitions)
        vhost, name, kind = self._claims.get(identity.partition("-")[0], ("", "", ""))
        if not kind:
            return ""
        what = "exchange" if kind == "exchange" else "queue"
        return f"{what} {name!r} in vhost {vhost!r}: "

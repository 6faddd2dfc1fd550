"""The order in which the hosts of a URL are tried: the one that took writes last is the first.

Without it each connection begins with the first host of the URL. After the machine of that one is
lost, a connection would wait for it, for as long as a lease, before it goes to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from psycopg import Connection

_PORT = "5432"


class Host(NamedTuple):
    """A host of a URL.

    Args:
        host: its name, address or directory with a socket; "" for that of libpq.
        hostaddr: its address; "" if the name has to be looked up.
        port: where it listens; "" for that of libpq.
    """

    host: str
    hostaddr: str
    port: str


class HostOrder:
    """Remembers which host took writes last; used by any thread."""

    def __init__(self) -> None:
        self._last: Host | None = None

    def of(self, parameters: Mapping[str, Any]) -> list[Host]:
        """Return the hosts of a URL in the order in which they are tried.

        Args:
            parameters: those of the URL, and of the environment where it says nothing.
        """
        listed = [
            str(parameters.get(name) or "").split(",") for name in ("host", "hostaddr", "port")
        ]
        count = max(len(each) for each in listed[:2])
        hosts = [
            Host(*(each[index] if len(each) > index else each[-1] for each in listed))
            for index in range(count)
        ]
        last = self._last
        # False sorts first, and the others keep the order of the URL.
        return sorted(hosts, key=lambda each: each != last)

    def took(self, connection: Connection[Any], hosts: list[Host]) -> None:
        """Note that a host has taken a connection.

        Args:
            connection: to the database.
            hosts: those that could be tried for it.
        """
        server = connection.info
        for each in hosts:
            same = server.hostaddr if each.hostaddr else server.host
            if (each.hostaddr or each.host, each.port or _PORT) == (same, str(server.port)):
                self._last = each


def parameters_of(hosts: list[Host]) -> dict[str, str]:
    """Return the parameters of a connection that name hosts."""
    named = {
        name: ",".join(getattr(each, name) for each in hosts)
        for name in ("host", "hostaddr", "port")
    }
    return {name: value for name, value in named.items() if value.strip(",")}

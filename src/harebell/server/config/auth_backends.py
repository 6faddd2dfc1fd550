"""Check `auth_backends`: a broker without a configured backend must not ask another one instead.

RabbitMQ asks the backends of the list in order, and the first one that accepts a user decides.
Harebell has the backend `internal` alone. So a list with `internal` starts: whoever only another
backend would accept is refused, with a warning at the start. Without `internal`, as in
`auth_backends.1 = ldap`, the users in the data directory are not meant to have access, and the
start is refused. The same holds for `internal` as one half of a pair such as `.authn = internal`
and `.authz = http`: the other half would restrict what its users may do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harebell.server.config.errors import ConfigError
from harebell.server.config.rabbitmq_conf import Line

INTERNAL = ("internal", "rabbit_auth_backend_internal")
"""The names of the backend that Harebell has."""
NO_BACKENDS = "none"
"""The value of an empty list in `advanced.config`."""


def check_backends(lines: Iterable[Line]) -> Iterator[str]:
    """Yield a warning for each backend that is not asked.

    Args:
        lines: every line whose key begins with `auth_backends`.

    Raises:
        ConfigError: no entry of the list has `internal` for authentication and authorization.
    """
    found = list(lines)
    # The list of advanced.config replaces that of rabbitmq.conf as a whole.
    found = [line for line in found if line.named] or found
    entries: dict[str, list[Line]] = {}
    for line in found:
        entries.setdefault(line.segments[1], []).append(line)
    if not entries:
        return
    others = [each for each in entries.values() if not _is_internal(each)]
    if len(others) == len(entries):
        line = others[0][0]
        raise ConfigError(
            f"{line.shown} is {line.value!r}: Harebell authenticates and authorizes users with the "
            "backend internal only, and does not use it instead of another one: add "
            "auth_backends.N = internal if the users of the broker itself may connect"
        )
    for entry in others:
        for line in entry:
            if line.value not in INTERNAL:
                yield (
                    f"{line.shown} has no effect in Harebell: users that only the backend "
                    f"{line.value} knows are refused"
                )


def _is_internal(entry: list[Line]) -> bool:
    """True if one entry of the list asks the internal backend alone."""
    if any(line.value not in INTERNAL for line in entry):
        return False
    parts = {line.segments[2:] for line in entry}
    return () in parts or {("authn",), ("authz",)} <= parts

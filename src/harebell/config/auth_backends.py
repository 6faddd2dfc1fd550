"""Read `auth_backends`: the backends of users, in the order in which they are asked.

    internal               authenticates and authorizes
    internal/http          internal authenticates, http authorizes
    internal/http+cache    both have to allow an operation

In `rabbitmq.conf` an entry is `auth_backends.1 = internal`, or `.authn` and `.authz` of it. The
first backend that accepts a user decides. An entry with a backend that Harebell does not have is
left out with a warning: users that only that backend would accept are refused. Without another
entry the start is refused: the users in the data directory are not asked instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from harebell.config.errors import ConfigError

if TYPE_CHECKING:
    from harebell.config.rabbitmq_conf import Line

INTERNAL = "internal"
HTTP = "http"
CACHE = "cache"
OAUTH2 = "oauth2"
BACKENDS = (INTERNAL, HTTP, CACHE, OAUTH2)
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""The algorithms of tokens: signatures with a private key, which a public one verifies."""
_PREFIX = "rabbit_auth_backend_"
NO_BACKENDS = "none"
"""The value of an empty list in `advanced.config`."""


def split(entry: str) -> tuple[str, tuple[str, ...]]:
    """Return the backend of an entry that authenticates, and those that authorize."""
    authn, two, authz = entry.partition("/")
    return authn, tuple(authz.split("+")) if two else (authn,)


def _plain(name: str) -> str:
    return name.strip().removeprefix(_PREFIX)


def backend_entry(value: Any) -> str:
    """Check one entry, such as http or internal/http."""
    entry = value.strip() if isinstance(value, str) else ""
    authn, authz = split(entry)
    words = [_plain(authn), *map(_plain, authz)]
    if OAUTH2 in words[1:] and words[0] != OAUTH2:
        raise ValueError(
            "must not have oauth2 behind another backend: it authorizes its own tokens"
        )
    for word in words:
        if word not in BACKENDS:
            raise ValueError(
                f"must be of the backends {', '.join(BACKENDS)}, such as http or internal/http; "
                f"there is no backend {word or 'without a name'}"
            )
    return words[0] if words[1:] == words[:1] else f"{words[0]}/{'+'.join(words[1:])}"


def backend_entries(value: Any) -> tuple[str, ...]:
    """Check a list of entries, or one text with commas between them."""
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not words:
        raise ValueError(f"must be one or more of {', '.join(BACKENDS)}, with commas between them")
    return tuple(backend_entry(word) for word in words)


def listed_backends(lines: Iterable[Line]) -> tuple[list[str], list[str]]:
    """Return the entries of `rabbitmq.conf`, and a warning for each that is left out.

    Args:
        lines: every line whose key begins with `auth_backends`.

    Raises:
        ConfigError: there is no entry of backends that Harebell has.
    """
    listed = list(lines)
    # As in RabbitMQ, the list of advanced.config, whose lines have names, replaces that of
    # rabbitmq.conf as a whole.
    listed = [line for line in listed if line.named] or listed
    entries: dict[str, list[Line]] = {}
    for line in listed:
        entries.setdefault(line.segments[1], []).append(line)
    read: list[str] = []
    warnings: list[str] = []
    for _, entry in sorted(entries.items(), key=lambda each: int(each[0])):
        text = _entry(entry)
        if text:
            read.append(text)
            continue
        warnings += [
            f"{line.shown} has no effect in Harebell: users that only the backend {line.value} "
            "knows are refused"
            for line in entry
            if not _known(line.value)
        ]
    if entries and not read:
        raise _missing(next(iter(entries.values())))
    return read, warnings


def _known(value: str) -> bool:
    return all(_plain(word) in BACKENDS for word in value.split(","))


def _entry(entry: list[Line]) -> str:
    """Return an entry in the form of a text; "" if Harebell does not have its backends."""
    parts = {line.segments[2:]: line.value.replace(",", "+").replace(" ", "") for line in entry}
    whole = parts.get((), "")
    authn, authz = parts.get(("authn",), whole), parts.get(("authz",), whole)
    try:
        return backend_entry(f"{authn}/{authz}") if authn and authz else ""
    except ValueError:
        return ""


def _missing(entry: list[Line]) -> ConfigError:
    line = next((line for line in entry if not _known(line.value)), entry[0])
    if _plain(line.value) == "ldap":
        return ConfigError(
            f"{line.shown} is {line.value!r}: Harebell has no LDAP backend: put a web service "
            "before the directory and write auth_backends.1 = http, or add auth_backends.N = "
            "internal if the users of the broker itself may connect"
        )
    return ConfigError(
        f"{line.shown} is {line.value!r}: Harebell authenticates and authorizes users with the "
        f"backends {', '.join(BACKENDS)} only, and does not use another one instead: an entry "
        "needs auth_backends.N = BACKEND, or both .authn and .authz; add auth_backends.N = "
        "internal if the users of the broker itself may connect"
    )

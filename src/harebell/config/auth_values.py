"""Read and check the values of the keys of the backends of users; see `harebell.config.values`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from harebell.config.auth_backends import ALGORITHMS
from harebell.config.values import names, pem_file, texts


def web_address(value: Any) -> str:
    """Check an address of a web server."""
    try:
        parts = urlsplit(value.strip()) if isinstance(value, str) else urlsplit("")
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or not value.isprintable() or " " in value.strip() or "#" in value:
        raise ValueError("must be an address such as http://localhost:8000/auth/user")
    return str(value.strip())


def words(value: Any) -> tuple[str, ...]:
    """Parse words with blanks between them, or a list of them."""
    parts = value.split() if isinstance(value, str) else value
    if isinstance(parts, list | tuple) and all(isinstance(each, str) and each for each in parts):
        return tuple(parts)
    raise ValueError("must be words with blanks between them, such as realm_access.roles groups")


def prefix(value: Any) -> str:
    """Check the start of scopes, which may be empty."""
    if isinstance(value, str) and value.isprintable() and " " not in value:
        return value
    raise ValueError('must be text without blanks, such as rabbitmq. or ""')


def algorithms(value: Any) -> tuple[str, ...]:
    """Check algorithms of signatures."""
    allowed = f"must be of {', '.join(ALGORITHMS)}, with commas between them"
    try:
        chosen = names(value)
    except ValueError:
        raise ValueError(allowed) from None
    if not chosen or not set(chosen) <= set(ALGORITHMS):
        raise ValueError(allowed)
    return chosen


def signing_keys(value: Any) -> dict[str, str]:
    """Check a table of PEM files by the ids of their keys."""
    try:
        paths = texts(value)
    except ValueError:
        raise ValueError('must be a table of PEM files such as { key-1 = "/etc/k.pem" }') from None
    return {name: pem_file(path) for name, path in paths.items()}


def scope_aliases(value: Any) -> dict[str, tuple[str, ...]]:
    """Check a table of scopes by other names of them."""
    try:
        return {name: words(each) for name, each in texts(value).items()}
    except ValueError:
        raise ValueError(
            'must be a table such as { admin = "rabbitmq.tag:administrator" }'
        ) from None

"""Refuse what a page of another origin makes a browser send.

A browser adds a stored HTTP Basic login to any request, and asks first (CORS) only about requests
that a form cannot make. So a form of a foreign page could declare and delete in the name of an
operator. Tools are no browsers: they send neither of these headers, and any content type.

    sec-fetch-site   says where the page comes from; sent to origins with TLS and to localhost
    origin           its scheme and host; is compared with the host that was asked
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from harebell.management.http.errors import HttpError

_SAFE = ("GET", "HEAD", "OPTIONS")
_OWN = ("same-origin", "none")
_ASKED_FIRST = "application/json"
"""A content type that no form can have."""


def is_allowed(origin: str, allowed: Iterable[str] | None) -> bool:
    """Whether pages of an origin may use the API.

    Args:
        origin: of a page.
        allowed: those that are configured; "*" is all of them.
    """
    return allowed is not None and not {origin, "*"}.isdisjoint(allowed)


def check_origin(method: str, headers: Mapping[str, str], allowed: Iterable[str] | None) -> None:
    """Refuse a request that changes something for a page that may not.

    Args:
        method: of the request.
        headers: by their names in small letters.
        allowed: the origins that are configured; None for none.

    Raises:
        HttpError: 403.
    """
    origin = headers.get("origin")
    if method in _SAFE or is_allowed(origin or "", allowed):
        return
    site = headers.get("sec-fetch-site")
    if site is None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Browsers name the origin of each request but GET and HEAD (Fetch standard): without one it
        # is a tool.
        own = origin is None or kind == _ASKED_FIRST or _host_of(origin) == headers.get("host")
    else:
        own = site in _OWN
    if not own:
        shown = origin or "another site"
        raise HttpError(
            403,
            "forbidden",
            f"a page of {shown} may not change anything here: add its origin to "
            "management_cors_allow_origins",
        )


def cors_headers(
    method: str, headers: Mapping[str, str], allowed: Iterable[str] | None, max_age: int
) -> Iterator[tuple[str, str]]:
    """Yield the headers that let a page of an allowed origin use the API.

    Args:
        method: of the request.
        headers: by their names in small letters.
        allowed: the origins that are configured; None for none.
        max_age: seconds for which a browser may keep the answer to OPTIONS.
    """
    origin = headers.get("origin")
    if origin is None or not is_allowed(origin, allowed):
        return
    # Not `*`, which browsers refuse for requests with a login (Fetch standard).
    yield ("access-control-allow-origin", origin)
    yield ("access-control-allow-credentials", "true")
    yield ("access-control-expose-headers", "location")
    if method == "OPTIONS":
        yield ("access-control-max-age", str(max_age))
        yield ("access-control-allow-methods", "HEAD, GET, POST, PUT, DELETE, OPTIONS")
        yield ("access-control-allow-headers", "authorization, content-type, x-reason")


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""

"""Scopes of OAuth 2 tokens that are permissions, in the notation of RabbitMQ.

    read:<vhost>/<name>[/<routing key>]     also write: and configure:
    tag:<tag>                               a tag of the user, such as administrator

`*` stands for any characters, and other special characters are percent-encoded: `%2F` is the vhost
`/`. `{vhost}` stands for the vhost, and `{claim}` for the text of a claim of the token; wildcards
in it stand for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from harebell.auth.authority import SOME, TOPIC, VHOST, Question
from harebell.auth.permissions import ACTIONS
from harebell.base.limits import PATTERN_CACHE_ENTRIES

_TAG = "tag:"
_PARTS = (2, 3)
_VARIABLE = re.compile(r"\{([^{}]*)\}")


class Grant(NamedTuple):
    """What a scope grants.

    Args:
        permission: configure, write or read.
        vhost, name, key: patterns; the key is "" where the scope has none.
    """

    permission: str
    vhost: str
    name: str
    key: str


@lru_cache(PATTERN_CACHE_ENTRIES)
def _pieces(pattern: str) -> tuple[str, ...]:
    return tuple(unquote(piece) for piece in pattern.split("*"))


def fits(pattern: str, text: str) -> bool:
    """True if a pattern with wildcards fits a text; linear in the length of the text."""
    first, *rest = _pieces(pattern)
    if not rest:
        return text == first
    last = rest.pop()
    if not text.startswith(first) or len(text) < len(first) + len(last):
        return False
    end = len(text) - len(last)
    if text[end:] != last:
        return False
    at = len(first)
    for piece in rest:
        place = text.find(piece, at, end)
        if place < 0:
            return False
        at = place + len(piece)
    return True


def granted(scopes: Iterable[str], claims: Mapping[str, Any]) -> tuple[Grant, ...]:
    """Return what scopes grant; `{vhost}` is left, and scopes in another notation are skipped.

    Args:
        scopes: without the prefix of the resource server.
        claims: of the token, for variables.
    """

    def value(match: re.Match[str]) -> str:
        claim = claims.get(match[1])
        if match[1] == "vhost" or not isinstance(claim, str):
            return match[0]
        return quote(claim, safe="").replace("*", "%2A")

    grants = []
    for scope in scopes:
        permission, _, resource = scope.partition(":")
        parts = resource.split("/")
        if permission in ACTIONS and len(parts) in _PARTS:
            texts = [_VARIABLE.sub(value, part) for part in parts]
            grants.append(Grant(permission, *texts, *[""] * (_PARTS[-1] - len(texts))))
    return tuple(grants)


def tags_of(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return the tags that scopes give."""
    return tuple(sorted({scope.removeprefix(_TAG) for scope in scopes if scope.startswith(_TAG)}))


def allows(grants: Iterable[Grant], question: Question) -> bool:
    """True if one of the grants allows it."""
    vhost = quote(question.vhost, safe="").replace("*", "%2A")

    def ok(pattern: str, text: str) -> bool:
        return fits(pattern.replace("{vhost}", vhost), text)

    for grant in grants:
        if not ok(grant.vhost, question.vhost):
            continue
        if question.about == VHOST:
            return True
        if grant.permission != question.permission:
            continue
        if question.about == SOME:
            return True
        if not ok(grant.name, question.name):
            continue
        if question.about != TOPIC or (grant.key and ok(grant.key, question.key)):
            return True
    return False


class ScopeError(ValueError):
    """A token has too many scopes."""


def scopes_at(claims: Any, path: str, resource_server: str) -> list[str]:
    """Return the scopes at a path of claims, such as `realm_access.roles`.

    A value is a list, a text with blanks between scopes, or an object with the scopes of each
    resource server.
    """
    here = [claims]
    for name in path.split("."):
        objects = [one for each in here for one in (each if isinstance(each, list) else [each])]
        here = [one[name] for one in objects if isinstance(one, dict) and name in one]
    scopes: list[str] = []
    for each in here:
        if isinstance(each, dict):
            mine = _words(each.get(resource_server))
            scopes += [f"{resource_server}.{word}" for word in mine]
        else:
            scopes += _words(each)
    return scopes


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list):
        return [each for each in value if isinstance(each, str)]
    return []


def scopes_of(
    claims: Mapping[str, Any],
    *,
    resource_server: str,
    prefix: str,
    additional: Iterable[str],
    aliases: Mapping[str, Iterable[str]],
    limit: int,
) -> list[str]:
    """Return the scopes of a token for this broker, without their prefix.

    Args:
        claims: of the token.
        resource_server: the name of the broker as a resource server.
        prefix: the start of its scopes.
        additional: paths of more claims with scopes.
        aliases: scopes by other names of them.
        limit: the largest number of scopes.

    Raises:
        ScopeError: there are more.
    """
    words = _words(claims.get("scope"))
    words += scopes_at(claims, "authorization.permissions.scopes", resource_server)
    for path in additional:
        words += scopes_at(claims, path, resource_server)
    for name in list(words):
        words += aliases.get(name, ())
    mine = {scope.removeprefix(prefix) for scope in words if scope.startswith(prefix)}
    if len(mine) > limit:
        raise ScopeError(f"the token has {len(mine)} scopes, at most {limit} are read")
    return sorted(mine)

"""Find the command of a request by its method and its path as it was sent.

A path is split at "/" before its segments are decoded, so a name may contain "/" as "%2F". One
slash at the end is ignored. A segment of a template is a literal or the name of an argument:

    GET /api/queues/{vhost}/{name}      /api/queues/%2F/a%2Fb  ->  vhost "/", name "a/b"

A literal is preferred to an argument. `harebell --url` runs commands by their names,
with or without a route:

    POST /api/admin/queues.purge        {"name": "jobs", "vhost": "/"}  ->  200 and the answer
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from harebell.management.http.errors import bad_request, not_allowed, not_found

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from harebell.admin.command import Command

ADMIN = ["api", "admin"]
"""The start of the paths that have the name of a command."""
_DEFAULT_EXCHANGE = "amq.default"
_WITH_EXCHANGES = ("exchanges", "bindings")
"""Resources in whose paths `amq.default` stands for the exchange without a name."""


class Route(NamedTuple):
    """A route of a command.

    Args:
        method: the HTTP method.
        path: the template of the path.
        command: what runs for it.
        summary: what a request does, in a sentence.
    """

    method: str
    path: str
    command: Command
    summary: str

    @property
    def segments(self) -> list[str]:
        """Return the segments of the template."""
        return self.path.strip("/").split("/")


class RouteMatch(NamedTuple):
    """The command of a request.

    Args:
        command: the command that the request runs.
        arguments: the arguments that the path has.
        by_name: whether the path has the name of the command.
    """

    command: Command
    arguments: dict[str, str]
    by_name: bool = False


class _Node:
    """A node of the tree of paths, which has a level for each segment."""

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.argument: _Node | None = None
        self.routes: dict[str, Route] = {}

    def next(self, segment: str) -> _Node:
        """Return the node for a segment of a template; it is made if there is none."""
        if segment.startswith("{"):
            if self.argument is None:
                self.argument = _Node()
            return self.argument
        return self.literals.setdefault(segment, _Node())

    def find(self, segments: list[str]) -> _Node | None:
        """Return the node of a path with routes; None if there is none."""
        if not segments:
            return self if self.routes else None
        literal = self.literals.get(segments[0])
        node = None if literal is None else literal.find(segments[1:])
        if node is None and self.argument is not None:
            node = self.argument.find(segments[1:])
        return node


class Routes:
    """The routes of all commands.

    Args:
        commands: every command that has a path.
    """

    def __init__(self, commands: Iterable[Command]) -> None:
        self.all = routes_of(commands)
        self._root = _Node()
        for route in self.all:
            node = self._root
            for segment in route.segments:
                node = node.next(segment)
            node.routes[route.method] = route

    def methods(self, segments: list[str]) -> list[str]:
        """Return the methods of a path, as the header `allow` has them."""
        node = self._root.find(segments)
        if node is None:
            raise not_found()
        methods = sorted(node.routes)
        return ["HEAD", *methods, "OPTIONS"] if "GET" in methods else [*methods, "OPTIONS"]

    def find(self, method: str, segments: list[str]) -> RouteMatch:
        """Return the command of a request.

        Raises:
            HttpError: 404 or 405.
        """
        if method == "POST" and len(segments) == len(ADMIN) + 1 and segments[:-1] == ADMIN:
            return RouteMatch(_command_named(segments[-1]), {}, by_name=True)
        node = self._root.find(segments)
        if node is None:
            raise not_found()
        route = node.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise not_allowed(method, self.methods(segments))
        arguments = {
            name[1:-1]: value
            for name, value in zip(route.segments, segments, strict=True)
            if name.startswith("{")
        }
        if segments[1] in _WITH_EXCHANGES:
            for name, value in arguments.items():
                if value == _DEFAULT_EXCHANGE and name != "vhost":
                    arguments[name] = ""
        return RouteMatch(route.command, arguments)


def _command_named(name: str) -> Command:
    """Return the command with a name.

    Raises:
        HttpError: 404, there is no such command.
    """
    # Imported here: it loads the catalog, which a broker needs only with its first request.
    from harebell.admin.catalog import find

    command = find(name)
    if command is None:
        raise not_found(f"there is no command {name!r}")
    return command


def routes_of(commands: Iterable[Command]) -> list[Route]:
    """Return the routes of commands."""
    return [
        Route(each.method, each.path, command, each.summary)
        for command in commands
        for each in command.routes
    ]


_ORIGIN = re.compile(rb"https?://[^/?]*", re.IGNORECASE)


def with_path(scope: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return the scope of a request whose target may be a whole URL (RFC 9112 3.2.2)."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    origin = _ORIGIN.match(raw)
    if origin is None:
        return scope
    raw = raw[origin.end() :] or b"/"
    return {**scope, "raw_path": raw, "path": unquote_to_bytes(raw).decode(errors="replace")}


def segments_of(raw_path: bytes, prefix: str) -> list[str]:
    """Split a path as it was sent, and decode its segments.

    Args:
        raw_path: the path, without the query.
        prefix: the start of all paths, such as "/rabbit"; "" for none.

    Raises:
        HttpError: it does not start with the prefix, or a segment is not UTF-8.
    """
    path = raw_path.partition(b"?")[0].removesuffix(b"/")
    start = prefix.encode()
    if not path.startswith(start + b"/"):
        raise not_found()
    segments = []
    for segment in path[len(start) + 1 :].split(b"/"):
        try:
            segments.append(unquote_to_bytes(segment).decode())
        except UnicodeDecodeError:
            raise bad_request(
                f"the path is not UTF-8: {segment.decode('ascii', 'replace')}"
            ) from None
    return segments

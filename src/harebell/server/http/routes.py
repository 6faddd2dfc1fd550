"""Find the command of a request by its method and its path as it was sent.

A path is split at "/" before its segments are decoded, so a name may contain "/" as "%2F". One
slash at the end is ignored. A segment of a template is a literal or the name of an argument:

    GET /api/queues/{vhost}/{name}      /api/queues/%2F/a%2Fb  ->  vhost "/", name "a/b"

A literal is preferred to an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

from harebell.server.http.errors import bad_request, not_allowed, not_found

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harebell.admin.command import Command

_DEFAULT_EXCHANGE = "amq.default"
_WITH_EXCHANGES = ("exchanges", "bindings")
"""Resources in whose paths `amq.default` stands for the exchange without a name."""


class Route(NamedTuple):
    """A route of a command.

    Args:
        method: the HTTP method.
        path: the template of the path.
        command: what runs for it.
    """

    method: str
    path: str
    command: Command

    @property
    def segments(self) -> list[str]:
        """Return the segments of the template."""
        return self.path.strip("/").split("/")


class Found(NamedTuple):
    """The command of a request.

    Args:
        command: what runs.
        arguments: the arguments that the path has.
    """

    command: Command
    arguments: dict[str, str]


class _Node:
    """A place in the tree of paths."""

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
        found = None if literal is None else literal.find(segments[1:])
        if found is None and self.argument is not None:
            found = self.argument.find(segments[1:])
        return found


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

    def find(self, method: str, segments: list[str]) -> Found:
        """Return the command of a request.

        Raises:
            HttpError: 404 or 405.
        """
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
        return Found(route.command, arguments)


def routes_of(commands: Iterable[Command]) -> list[Route]:
    """Return the routes of commands."""
    found = []
    for command in commands:
        for route in command.http:
            method, _, path = route.partition(" ")
            found.append(Route(method, path, command))
    return found


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
    found = []
    for segment in path[len(start) + 1 :].split(b"/"):
        try:
            found.append(unquote_to_bytes(segment).decode())
        except UnicodeDecodeError:
            raise bad_request(
                f"the path is not UTF-8: {segment.decode('ascii', 'replace')}"
            ) from None
    return found

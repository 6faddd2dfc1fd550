"""Permissions of a user in a vhost: three patterns for names of resources.

A pattern is a regular expression that is searched for anywhere in the name, as RabbitMQ does it;
"" means `^$`, which matches no name. The name of the default exchange is `amq.default` here.
"""

from __future__ import annotations

import re
import warnings

from harebell.auth.limits import PERMISSION_CACHE_ENTRIES
from harebell.base.patterns import PatternRefused, Search, found_by, search_for

CONFIGURE = "configure"
WRITE = "write"
READ = "read"
ACTIONS = (CONFIGURE, WRITE, READ)

_NOTHING = "^$"
_SHOWN = 200
_INVALID = "is invalid: "


class PatternError(ValueError):
    """A pattern is no valid regular expression; the text is a sentence for the user."""


def compiled(pattern: str, action: str, *, stored: bool = False) -> Search:
    """Return a function that searches for a pattern.

    Args:
        pattern: the regular expression.
        action: configure, write or read, for the error text.
        stored: whether it was taken once: if it costs too much, it then finds nothing.

    Raises:
        PatternError: it is invalid, costs too much, or has another meaning in RabbitMQ.
    """
    search = found_by if stored else search_for
    try:
        with warnings.catch_warnings():
            # A set such as [[:alpha:]] is a class in RabbitMQ and single letters in Python.
            warnings.simplefilter("error", FutureWarning)
            return search(pattern or _NOTHING, re.ASCII)
    except (PatternRefused, FutureWarning) as error:
        shown = pattern if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]}..."
        raise PatternError(
            f"the {action} pattern '{shown}' is not a regular expression: "
            f"{str(error).removeprefix(_INVALID)}"
        ) from None


class CheckedPatterns:
    """Patterns for actions, and what they have allowed already; immutable.

    Args:
        patterns: searches for the pattern of each action.
    """

    __slots__ = ("_known", "_patterns")

    def __init__(self, patterns: dict[str, Search]) -> None:
        self._patterns = patterns
        self._known: dict[tuple[str, str], bool] = {}

    def allow(self, action: str, name: str) -> bool:
        """True if an action on a name, or with a routing key, is allowed."""
        known = self._known.get((action, name))
        if known is None:
            known = self._patterns[action](name)
            if len(self._known) >= PERMISSION_CACHE_ENTRIES:
                self._known.clear()
            self._known[action, name] = known
        return known


class Permissions(CheckedPatterns):
    """The permissions of one user in one vhost; immutable.

    Args:
        configure: names of resources that the user may declare and delete.
        write: names of exchanges to publish to, and of destinations to bind.
        read: names of queues to consume from, and of exchanges to bind to.
        stored: whether the patterns were taken once.

    Raises:
        PatternError: one of them is no valid regular expression.
    """

    __slots__ = ("configure", "read", "write")

    def __init__(
        self, configure: str = "", write: str = "", read: str = "", *, stored: bool = False
    ) -> None:
        self.configure, self.write, self.read = configure, write, read
        super().__init__(
            {action: compiled(getattr(self, action), action, stored=stored) for action in ACTIONS}
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Permissions) and all(
            getattr(self, action) == getattr(other, action) for action in ACTIONS
        )

    def __hash__(self) -> int:
        return hash((self.configure, self.write, self.read))

    def allow_some(self, action: str) -> bool:
        """True if an action is allowed on some name: its pattern is not the one for no name."""
        return getattr(self, action) not in ("", _NOTHING)


def everything() -> Permissions:
    """Return permissions for all resources."""
    return Permissions(".*", ".*", ".*")

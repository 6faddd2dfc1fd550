"""Permissions of a user in a vhost: three patterns for names of resources.

A pattern is a regular expression that is searched for anywhere in the name, as RabbitMQ does it;
"" means `^$`, which matches no name. The name of the default exchange is `amq.default` here.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field

from harebell.base.limits import PERMISSION_CACHE_ENTRIES
from harebell.base.patterns import Search, search_for

CONFIGURE = "configure"
WRITE = "write"
READ = "read"
ACTIONS = (CONFIGURE, WRITE, READ)

_NOTHING = "^$"


class PatternError(ValueError):
    """A pattern is no valid regular expression; the text is a sentence for the user."""


def compiled(pattern: str, action: str) -> Search:
    """Return a function that searches for a pattern.

    Args:
        pattern: the regular expression.
        action: configure, write or read, for the error text.

    Raises:
        PatternError: it is invalid, or has another meaning in RabbitMQ.
    """
    try:
        with warnings.catch_warnings():
            # A set such as [[:alpha:]] is a class in RabbitMQ and single letters in Python.
            warnings.simplefilter("error", FutureWarning)
            return search_for(pattern or _NOTHING, re.ASCII)
    except (re.error, FutureWarning) as error:
        raise PatternError(
            f"the {action} pattern '{pattern}' is not a regular expression: {error}"
        ) from None


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions of one user in one vhost; immutable.

    Args:
        configure: names of resources that the user may declare and delete.
        write: names of exchanges to publish to, and of destinations to bind.
        read: names of queues to consume from, and of exchanges to bind to.

    Raises:
        PatternError: one of them is no valid regular expression.
    """

    configure: str = ""
    write: str = ""
    read: str = ""
    _patterns: dict[str, Search] = field(init=False, repr=False, compare=False)
    _known: dict[tuple[str, str], bool] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        patterns = {action: compiled(getattr(self, action), action) for action in ACTIONS}
        object.__setattr__(self, "_patterns", patterns)

    def allow(self, action: str, name: str) -> bool:
        """True if an action (configure, write, read) on a name is allowed."""
        known = self._known.get((action, name))
        if known is None:
            known = self._patterns[action](name)
            if len(self._known) >= PERMISSION_CACHE_ENTRIES:
                self._known.clear()
            self._known[action, name] = known
        return known


def everything() -> Permissions:
    """Return permissions for all resources."""
    return Permissions(".*", ".*", ".*")

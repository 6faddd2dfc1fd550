"""What a user may do in a vhost: three patterns over the names of its resources.

A pattern is a regular expression that is searched for anywhere in the name, as RabbitMQ does it;
"" stands for `^$`, which no resource has as its name. The default exchange is asked for as
`amq.default`.
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
    """A pattern is no regular expression; the text is a sentence for the user."""


def compiled(pattern: str, action: str) -> Search:
    """A pattern, ready to be searched for.

    Args:
        pattern: the regular expression.
        action: what it is for, for the error.

    Raises:
        PatternError: it is none, or it has what means something else elsewhere.
    """
    try:
        with warnings.catch_warnings():
            # A set such as [[:alpha:]] is a class to RabbitMQ and letters to Python: say so.
            warnings.simplefilter("error", FutureWarning)
            return search_for(pattern or _NOTHING, re.ASCII)
    except (re.error, FutureWarning) as error:
        raise PatternError(
            f"the {action} pattern '{pattern}' is not a regular expression: {error}"
        ) from None


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions of one user in one vhost. A change makes a new one.

    Args:
        configure: names of what the user may declare and delete.
        write: names of the exchanges to publish to, and of what to bind.
        read: names of the queues to take from, and of the exchanges to bind to.

    Raises:
        PatternError: one of them is no regular expression.
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
        """Whether an action (configure, write, read) on a name is allowed."""
        known = self._known.get((action, name))
        if known is None:
            known = self._patterns[action](name)
            if len(self._known) >= PERMISSION_CACHE_ENTRIES:
                self._known.clear()
            self._known[action, name] = known
        return known


def everything() -> Permissions:
    """Permission for whatever there is."""
    return Permissions(".*", ".*", ".*")

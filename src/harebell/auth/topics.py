"""What a user may do with the routing keys of a topic exchange: two patterns over the keys.

They are asked after the permissions for the exchange itself. Without any for an exchange, all its
keys are allowed. `{username}` and `{vhost}` in a pattern stand for the user's own and the vhost's
name, as they are: what would mean something else in a regular expression is taken literally.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harebell.auth.permissions import READ, WRITE, compiled
from harebell.base.limits import PERMISSION_CACHE_ENTRIES
from harebell.base.patterns import Search

TOPIC_ACTIONS = (WRITE, READ)


@dataclass(frozen=True, slots=True)
class TopicPermission:
    """The topic permissions of one user for one exchange. A change makes another one.

    Args:
        write: keys to publish with.
        read: keys to bind with.
        username: what `{username}` stands for.
        vhost: what `{vhost}` stands for.

    Raises:
        PatternError: one of the patterns is no regular expression.
    """

    write: str
    read: str
    username: str = ""
    vhost: str = ""
    _patterns: dict[str, Search] = field(init=False, repr=False, compare=False)
    _known: dict[tuple[str, str], bool] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        patterns = {action: self._expanded(action) for action in TOPIC_ACTIONS}
        object.__setattr__(self, "_patterns", patterns)

    def _expanded(self, action: str) -> Search:
        pattern: str = getattr(self, action)
        # As it was written first, for an error that the user recognises.
        compiled(pattern, action)
        for name, value in (("{username}", self.username), ("{vhost}", self.vhost)):
            pattern = pattern.replace(name, re.escape(value))
        return compiled(pattern, action)

    def allow(self, action: str, key: str) -> bool:
        """Whether an action (write, read) with a routing key is allowed."""
        known = self._known.get((action, key))
        if known is None:
            known = self._patterns[action](key)
            if len(self._known) >= PERMISSION_CACHE_ENTRIES:
                self._known.clear()
            self._known[action, key] = known
        return known

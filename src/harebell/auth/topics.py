"""Topic permissions: two patterns for routing keys on a topic exchange.

They are checked after the permissions for the exchange. An exchange without topic permissions
allows all keys. `{username}` and `{vhost}` in a pattern are replaced by the names, escaped for
regular expressions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from harebell.auth.permissions import READ, WRITE, CheckedPatterns, compiled
from harebell.base.patterns import Search

TOPIC_ACTIONS = (WRITE, READ)


class TopicRule(Protocol):
    """The topic permissions of one user for one exchange, wherever they come from."""

    def allow(self, action: str, key: str) -> bool:
        """True if an action (write, read) with a routing key is allowed."""


@dataclass(frozen=True, slots=True)
class TopicPermission(CheckedPatterns):
    """The topic permissions of one user for one exchange; immutable.

    Args:
        write: routing keys to publish with.
        read: routing keys to bind with.
        username: the value of `{username}`.
        vhost: the value of `{vhost}`.
        stored: whether the patterns were taken once.

    Raises:
        PatternError: one of the patterns is no valid regular expression.
    """

    write: str
    read: str
    username: str = ""
    vhost: str = ""

    def __post_init__(self) -> None:
        patterns = {action: self._expanded(action) for action in TOPIC_ACTIONS}
        object.__setattr__(self, "_patterns", patterns)

    def _expanded(self, action: str) -> Search:
        pattern: str = getattr(self, action)
        # The pattern as configured, for an error that the user recognises.
        compiled(pattern, action, stored=self.stored)
        for name, value in (("{username}", self.username), ("{vhost}", self.vhost)):
            pattern = pattern.replace(name, re.escape(value))
        return compiled(pattern, action, stored=self.stored)

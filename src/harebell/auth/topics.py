"""Topic permissions: two patterns for routing keys on a topic exchange.

They are checked after the permissions for the exchange. An exchange without topic permissions
allows all keys. `{username}` and `{vhost}` in a pattern are replaced by the names, escaped for
regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from harebell.auth.permissions import READ, WRITE, CheckedPatterns, compiled
from harebell.base.patterns import Search

TOPIC_ACTIONS = (WRITE, READ)


class TopicRule(Protocol):
    """The topic permissions of one user for one exchange, wherever they come from."""

    def allow(self, action: str, key: str) -> bool:
        """True if an action (write, read) with a routing key is allowed."""


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

    __slots__ = ("read", "write")

    def __init__(
        self, write: str, read: str, username: str = "", vhost: str = "", *, stored: bool = False
    ) -> None:
        self.write, self.read = write, read
        names = {"{username}": username, "{vhost}": vhost}
        super().__init__(
            {
                action: _expanded(getattr(self, action), action, names, stored=stored)
                for action in TOPIC_ACTIONS
            }
        )


def _expanded(pattern: str, action: str, names: Mapping[str, str], *, stored: bool) -> Search:
    # The pattern as configured, for an error that the user recognises.
    compiled(pattern, action, stored=stored)
    for name, value in names.items():
        pattern = pattern.replace(name, re.escape(value))
    return compiled(pattern, action, stored=stored)

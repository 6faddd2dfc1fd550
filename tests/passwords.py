"""Users whose passwords are derived once in a process, for worlds of which a test makes thousands.

The stored forms of a password take eight thousand rounds of SHA, which is what they are for, and
more than all the rest of a small world. They are the real ones: only their salt is that of another
world with the same password.
"""

from __future__ import annotations

import os
from functools import cache

from harebell.auth.users import Secrets, Users


class QuickUsers(Users):
    """Users that are quick to add; tests of passwords themselves use `Users`."""

    def derived(self, password: str, algorithm: str = "") -> Secrets:
        """The stored forms, with a salt that this process has drawn."""
        found = _derived(password, algorithm or self.algorithm, self.cram)
        return found._replace(verifiers=dict(found.verifiers))


@cache
def _derived(password: str, algorithm: str, cram: bool) -> Secrets:
    return Users(os.urandom, cram=cram, algorithm=algorithm).derived(password)

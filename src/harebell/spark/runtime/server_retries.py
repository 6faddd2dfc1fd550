"""Repeat requests to the resident server only while it lives.

Spark Connect repeats a request without an answer for more than ten minutes, because a server may
come back. The resident server does not: another one has another port and another token.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.connect.client.retries import DefaultPolicy


class RepeatWhileServed(DefaultPolicy):
    """Spark's own policy while the server can be connected to.

    Args:
        check: raises an error when the server has ended.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        super().__init__()
        self._check = check

    def can_retry(self, e: BaseException) -> bool:
        """Return whether a request that failed is sent again.

        Raises:
            SessionError: the server has ended.
        """
        if not super().can_retry(e):
            return False
        self._check()
        return True

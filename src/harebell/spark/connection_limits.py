"""Wait for a connection where a limit allows no more of them, instead of failing.

There are two limits: the broker's own, of a user, a virtual host or the broker, and the option
`maxConnections`, of the tasks of one executor (`task_connections`). The time for both is the
option `connectionWait`.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable

from harebell.base.errors import HarebellError
from harebell.client.blocking import Connection
from harebell.client.errors import AMQPError, NotAllowed
from harebell.spark.limits import SPARK_RETRY_SECONDS, SPARK_TURN_SECONDS

_LOG = logging.getLogger("harebell.spark")
_LIMIT = re.compile(r"connection limit \(\d+\) is reached")


class NoConnectionFree(HarebellError):
    """Other connections did not end in time; the text says which limit it was."""


def is_full(error: AMQPError) -> bool:
    """True if the broker refuses a connection only because too many others are open."""
    return isinstance(error, NotAllowed) and _LIMIT.search(error.text) is not None


def connect_in_turn(
    address: str, wait: float, connect: Callable[[], Connection], option: str = "connectionWait"
) -> Connection:
    """Return a connection, as soon as the broker's limit allows one.

    Args:
        address: of the broker, for messages.
        wait: seconds to wait for it at most.
        connect: opens it.
        option: what sets the time.

    Raises:
        NoConnectionFree: the limit allows none in that time.
        AMQPError: it cannot be opened for another reason.
    """
    give_up = time.monotonic() + wait
    pause, warned = SPARK_RETRY_SECONDS, False
    while True:
        try:
            return connect()
        except NotAllowed as error:
            # Another refusal, such as a virtual host that the user may not enter, does not pass.
            if not is_full(error):
                raise
            remaining = give_up - time.monotonic()
            if remaining <= 0:
                raise NoConnectionFree(
                    f"the broker at {address} allowed no more connections for {wait:g} s "
                    f"({option}): {error.text}. Raise this limit (harebell limits set), or let "
                    "fewer tasks connect at once (the option maxConnections)"
                ) from error
            if not warned:
                _LOG.warning("waiting for a connection to %s: %s", address, error.text)
                warned = True
        # Many tasks may wait: each asks less and less often, and not all at once.
        time.sleep(min(remaining, pause * random.uniform(0.5, 1.0)))  # noqa: S311 - no secret
        pause = min(2 * pause, SPARK_TURN_SECONDS)

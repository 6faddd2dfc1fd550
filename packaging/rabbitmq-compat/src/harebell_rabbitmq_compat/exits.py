"""Exit codes of RabbitMQ's tools, which are those of sysexits.h, and the error that carries one."""

from __future__ import annotations

OK = 0
USAGE = 64
DATA = 65
NO_USER = 67
UNAVAILABLE = 69
SOFTWARE = 70
TEMPORARY = 75
CONFIG = 78


class VerbFailed(Exception):
    """A verb failed.

    Args:
        text: the reason, printed on standard error.
        code: the exit code.
        heading: the line before the reason; "" for none.
    """

    def __init__(self, text: str, code: int = UNAVAILABLE, heading: str = "Error:") -> None:
        super().__init__(text)
        self.code = code
        self.heading = heading


class WrongArguments(Exception):
    """The arguments of a verb are wrong.

    Args:
        reason: what is wrong.
        code: the exit code.
        heading: stands before the reason.
    """

    def __init__(
        self, reason: str, code: int = USAGE, heading: str = "Error (argument validation)"
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.heading = heading

"""How a verb ends when it fails: one sentence on standard error and an exit code.

| code | means |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | the command line or the configuration is wrong (click's own code for it) |
| 3 | a data directory is damaged (`harebell store`) |
| 4 | there is no broker to connect to, or it did not let us in |
| 74 | the disk failed (`limits.EXIT_DISK`, which a running broker gives itself) |
"""

from __future__ import annotations

import click

from harebell.base.limits import EXIT_DISK
from harebell.base.printable import printable

FAILED = 1
WRONG_USAGE = 2
DAMAGED = 3
NOT_CONNECTED = 4


class _Sentence(click.ClickException):
    """An end with a sentence, in which names of others are shown and not obeyed."""

    def format_message(self) -> str:
        return printable(self.message, "\n")


class Failure(_Sentence):
    """It failed."""

    exit_code = FAILED


class DiskFailed(_Sentence):
    """The broker's disk refused a read or a sync."""

    exit_code = EXIT_DISK


class WrongUsage(_Sentence):
    """The command line or the configuration is wrong, in a sentence of our own."""

    exit_code = WRONG_USAGE


class NotConnected(_Sentence):
    """There is no broker to connect to, or it did not let us in."""

    exit_code = NOT_CONNECTED

"""How a verb ends when it fails: one sentence on standard error and an exit code.

| code | means |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | the command line or the configuration is wrong (click's own code for it) |
| 3 | a data directory is damaged (`harebell store`) |
| 4 | there is no broker to connect to, or it did not let us in |
| 74 | the broker's disk failed (`limits.EXIT_DISK`, which the broker gives itself) |
"""

from __future__ import annotations

import click

FAILED = 1
WRONG_USAGE = 2
DAMAGED = 3
NOT_CONNECTED = 4


class Failure(click.ClickException):
    """It failed."""

    exit_code = FAILED


class WrongUsage(click.ClickException):
    """The command line or the configuration is wrong, in a sentence of our own."""

    exit_code = WRONG_USAGE


class NotConnected(click.ClickException):
    """There is no broker to connect to, or it did not let us in."""

    exit_code = NOT_CONNECTED

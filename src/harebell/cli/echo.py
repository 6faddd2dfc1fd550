"""Printing: like `click.echo`, but what does not print is escaped before a terminal sees it."""

from __future__ import annotations

import click

from harebell.base.printable import printable

_KEPT = "\n\t"


def echo(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    """Print text.

    Args:
        text: lines; names in them have no line ends of their own any more.
        nl: whether a line end follows.
        err: to standard error.
    """
    click.echo(printable(text, _KEPT), nl=nl, err=err)

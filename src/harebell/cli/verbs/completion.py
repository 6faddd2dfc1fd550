"""`harebell completion`: print the script that completes verbs, flags and names in a shell."""

from __future__ import annotations

import click

from harebell.cli.verb import Verb, echo

_VARIABLE = "_HAREBELL_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def _completion(shell: str) -> None:
    from click.shell_completion import get_completion_class

    from harebell.cli.main import harebell

    completer = get_completion_class(shell)
    assert completer is not None, "click has these shells"
    echo(completer(harebell, {}, "harebell", _VARIABLE).source())


completion = Verb(
    "completion",
    callback=_completion,
    params=[click.Argument(["shell"], type=click.Choice(SHELLS))],
    help="Print the script that completes commands in bash, zsh or fish.",
)

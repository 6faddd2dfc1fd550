"""The option `--lake` of the verbs that answer questions in SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def lake_flag(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a verb with `--lake`."""
    return click.option(
        "--lake",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(),
        help="Directory that lake('name') begins from.  [default: the working directory]",
    )(command)

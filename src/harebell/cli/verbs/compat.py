"""`harebell compat`: put RabbitMQ's command-line tools into a directory.

The tools are the distribution `harebell-rabbitmq-compat`. Its scripts would hide those of a
RabbitMQ on the same machine, so that it is installed on its own, and its commands can be written
into a directory that is not on everybody's `PATH`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from harebell.cli.nouns import NounGroup
from harebell.cli.verb import Failure, Verb, echo

DISTRIBUTION = "harebell-rabbitmq-compat"
_PACKAGE = "harebell_rabbitmq_compat"
TOOLS = (
    "rabbitmqctl",
    "rabbitmq-diagnostics",
    "rabbitmq-plugins",
    "rabbitmq-queues",
    "rabbitmq-streams",
    "rabbitmq-upgrade",
    "rabbitmqadmin",
    "rabbitmq-server",
)
_MODE = 0o755


def _shim(tool: str) -> str:
    """Return the text of the command of a tool, which runs it with this Python."""
    function = tool.replace("-", "_")
    return (
        f"#!{sys.executable}\n"
        f"import sys\n\nfrom {_PACKAGE}.main import {function}\n\nsys.exit({function}())\n"
    )


def _install(directory: str, force: bool) -> None:
    if find_spec(_PACKAGE) is None:
        raise Failure(
            f"the tools are not installed: install {DISTRIBUTION}, in a clone of Harebell with "
            "`pip install ./packaging/rabbitmq-compat`"
        )
    target = Path(directory)
    paths = [target / tool for tool in TOOLS]
    there = [path for path in paths if path.exists() and not _is_ours(path)]
    if there and not force:
        raise Failure(
            f"{there[0]} is there already and would be replaced: choose another directory, or "
            "give --force"
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
        for tool, path in zip(TOOLS, paths, strict=True):
            path.unlink(missing_ok=True)  # a link must not lead to what it points to
            path.write_text(_shim(tool), encoding="utf-8")
            path.chmod(_MODE)
    except OSError as error:
        raise Failure(f"cannot write to {target}: {error.strerror or error}") from None
    echo(f"{len(TOOLS)} tools were written to {target}: {', '.join(TOOLS)}")


def _is_ours(path: Path) -> bool:
    """Whether a file was written by an earlier installation."""
    try:
        return _PACKAGE in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


compat = NounGroup("compat", help="Install RabbitMQ's command-line tools for this broker.")
compat.add_command(
    Verb(
        "install-shims",
        callback=_install,
        params=[
            click.Argument(["directory"]),
            click.Option(
                ["--force"],
                is_flag=True,
                help="Replace tools of the same names, such as RabbitMQ's.",
            ),
        ],
        help=f"Write {', '.join(TOOLS[:-1])} and {TOOLS[-1]} into DIRECTORY.",
    )
)

"""Parse the command line of RabbitMQ's tools: flags may stand before and after the verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harebell_rabbitmq_compat.exits import WrongArguments

GLOBAL_FLAGS: dict[str, type] = {
    "node": str,
    "quiet": bool,
    "silent": bool,
    "longnames": bool,
    "timeout": float,
    "formatter": str,
    "printer": str,
    "file": str,
    "vhost": str,
    "help": bool,
    "script-name": str,
    "erlang-cookie": str,
    "no-table-headers": bool,
    "table-headers": bool,
    "dry-run": bool,
    "data-dir": str,
}
"""Flags of every verb. `--data-dir` is an addition: the data directory of the broker."""

SHORT_FLAGS = {
    "n": "node",
    "q": "quiet",
    "s": "silent",
    "l": "longnames",
    "t": "timeout",
    "p": "vhost",
    "h": "help",
    "?": "help",
}


class CommandLine:
    """What a command line asks for.

    Args:
        arguments: the verb and its arguments.
        flags: the values of flags, by their long names.
    """

    def __init__(self, arguments: Sequence[str], flags: Mapping[str, Any]) -> None:
        self.arguments = list(arguments)
        self.flags = dict(flags)


def parse(
    words: Sequence[str], more: Mapping[str, type], short: Mapping[str, str], *, strict: bool
) -> CommandLine:
    """Separate arguments and flags.

    Args:
        words: the words after the name of the tool.
        more: flags of the verb, with their types.
        short: short flags of the verb.
        strict: refuse unknown flags; else they are skipped, to find the verb.

    Raises:
        WrongArguments: a flag is unknown, or its value is missing or wrong.
    """
    known, letters = {**GLOBAL_FLAGS, **more}, {**SHORT_FLAGS, **short}
    arguments: list[str] = []
    flags: dict[str, Any] = {}
    invalid: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            arguments += rest
            break
        if not word.startswith("-") or word == "-":
            arguments.append(word)
            continue
        flag, equals, value = word.partition("=")
        name = flag[2:].replace("_", "-") if flag.startswith("--") else letters.get(flag[1:], "")
        if name not in known:
            invalid.append((flag, value))
        elif known[name] is bool:
            flags[name] = value != "false"
        elif not equals and not rest:
            invalid.append((flag, ""))
        else:
            given = value if equals else rest.pop(0)
            try:
                flags[name] = known[name](given)
            except ValueError:
                invalid.append((flag, given))
    if invalid and strict:
        shown = "\n".join(f"{flag} : {value}" for flag, value in invalid)
        raise WrongArguments(f"Invalid options for this command:\n{shown}")
    return CommandLine(arguments, flags)

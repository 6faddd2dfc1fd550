"""Describe a verb of RabbitMQ's tools once, and what it gets when it runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from harebell_rabbitmq_compat.exits import DATA, NO_USER, SOFTWARE, UNAVAILABLE, VerbFailed
from harebell_rabbitmq_compat.node import CommandRefused, Node
from harebell_rabbitmq_compat.options import GLOBAL_FLAGS
from harebell_rabbitmq_compat.tables import Rows

CTL = "rabbitmqctl"
DIAGNOSTICS = "rabbitmq-diagnostics"
PLUGINS = "rabbitmq-plugins"
QUEUES = "rabbitmq-queues"
STREAMS = "rabbitmq-streams"
UPGRADE = "rabbitmq-upgrade"
RUNNING = "running"
STOPPED = "stopped"
ANY = "any"
"""States of the broker that a verb is for; ANY is also none at all."""
MANY = 1_000
"""Most arguments of a verb that takes any number."""

Result = Rows | str | dict[str, Any] | None
"""What a verb prints: rows, a text, a text for people with an object for JSON, or nothing."""


class Report(dict[str, Any]):
    """An object for JSON, with the text that people get instead.

    Args:
        text: the text.
        **members: the object.
    """

    def __init__(self, text: str, **members: Any) -> None:
        super().__init__(members)
        self.text = text


class Call:
    """A verb that was called.

    Args:
        node: the broker that it is for.
        arguments: its arguments.
        flags: its flags.
        say: prints a line at once, unless `--quiet` was given.
    """

    def __init__(
        self,
        node: Node,
        arguments: list[str],
        flags: Mapping[str, Any],
        say: Callable[[str], None],
    ) -> None:
        self.node = node
        self.arguments = arguments
        self.flags = flags
        self.say = say

    @property
    def vhost(self) -> str:
        """The vhost of `-p`, or `/`."""
        return str(self.flags.get("vhost", "/"))

    def filled(self, template: str) -> str:
        """Return a template with the arguments for {0}, {1}, ..., and with {vhost} and {node}."""
        node = self.node.name if "{node}" in template else ""
        return template.format(*self.arguments, vhost=self.vhost, node=node)

    def ask(self, command: str, **given: Any) -> Any:
        """Run a command of the broker.

        Raises:
            VerbFailed: it was refused; the exit code is RabbitMQ's for the reason.
        """
        try:
            return self.node.ask(command, **given)
        except CommandRefused as refusal:
            raise VerbFailed(*_as_rabbitmq_says(str(refusal))) from None

    def require_vhost(self, name: str | None = None) -> None:
        """Refuse a vhost that does not exist; without a name that of `-p`."""
        wanted = self.vhost if name is None else name
        if not self.has_vhost(wanted):
            raise VerbFailed(f"Virtual host '{wanted}' does not exist", DATA, heading="")

    def require_user(self, name: str) -> None:
        """Refuse a user that does not exist."""
        if not self.has_user(name):
            raise VerbFailed(f'User "{name}" does not exist', NO_USER)

    def has_vhost(self, name: str) -> bool:
        """Whether there is a vhost of that name."""
        return any(row["name"] == name for row in self.ask("vhosts.list"))

    def has_user(self, name: str) -> bool:
        """Whether there is a user of that name."""
        return any(row["name"] == name for row in self.ask("users.list"))


def parsed_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        VerbFailed: it is invalid.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise VerbFailed(f"JSON decoding error. Reason: {error}") from None


def _as_rabbitmq_says(reason: str) -> tuple[str, int]:
    """Return the text and the exit code for a refusal of the broker."""
    what, _, rest = reason.partition("'")
    name = rest.partition("':")[0]
    match what:
        case "no user ":
            return f'User "{name}" does not exist', NO_USER
        case "no vhost ":
            return f"Virtual host '{name}' does not exist", UNAVAILABLE
        case "there is a user ":
            return f'User "{name.partition(chr(39))[0]}" already exists', SOFTWARE
    return reason, UNAVAILABLE


class Verb(NamedTuple):
    """A verb.

    Args:
        name: its name.
        run: executes it.
        usage: its arguments and flags for the usage line.
        summary: what it does, in a sentence.
        minimum: the least number of arguments.
        maximum: the most.
        flags: its own flags, with the types of their values.
        short: its own short flags.
        banner: the sentence that is printed before it runs, a template with {0} for the first
            argument, {vhost} and {node}, or a function; "" for none.
        tools: the tools that have it.
        seconds: its timeout unless one is given, which is printed; None for no line.
        columns: the columns that its arguments may name; () if they are no columns.
        state: the state that the broker has to be in.
        check: refuses wrong arguments and flags before anything is printed.
    """

    name: str
    run: Callable[[Call], Result]
    usage: str
    summary: str
    minimum: int
    maximum: int
    flags: Mapping[str, type]
    short: Mapping[str, str]
    banner: Callable[[Call], str] | str
    tools: tuple[str, ...]
    seconds: float | None
    columns: Sequence[str]
    state: str
    check: Callable[[Call], None] | None

    def announcement(self, call: Call) -> str:
        """Return the sentence that is printed before it runs."""
        if callable(self.banner):
            return self.banner(call)
        return call.filled(self.banner)


VERBS: dict[str, Verb] = {}
"""Every verb that works, by name."""


_BRACKETS = re.compile(r"\[([^]]*)\]")
_FLAG = re.compile(r"--([a-z-]+)(?:\|-(\w))?(.*)")


def _counts(usage: str, optional: Sequence[str]) -> tuple[int, int]:
    """Return how many arguments a usage line names: at least, and at most."""
    least = _BRACKETS.sub("", usage).count("<")
    arguments = [part for part in optional if not part.startswith("-")]
    return least, MANY if any("..." in part for part in arguments) else least + len(arguments)


def verb(
    usage: str = "",
    *,
    arguments: tuple[int, int] | None = None,
    flags: Mapping[str, type] = {},  # it is read only
    short: Mapping[str, str] = {},  # it is read only
    banner: Callable[[Call], str] | str = "",
    tools: tuple[str, ...] | str = (CTL, DIAGNOSTICS),
    seconds: float | None = None,
    columns: Sequence[str] = (),
    name: str = "",
    summary: str = "",
    state: str = RUNNING,
    check: Callable[[Call], None] | None = None,
) -> Callable[[Callable[[Call], Result]], Callable[[Call], Result]]:
    """Make a function a verb; the arguments are those of `Verb`, the summary is its docstring.

    The usage line says how many arguments and which flags there are, `[--name|-n <value>]` being
    a text and `[--name]` a boolean. Given are those that RabbitMQ's usage line does not tell, and
    flags that are numbers.
    """
    optional = _BRACKETS.findall(usage)
    known, letters = dict(flags), dict(short)
    for match in filter(None, map(_FLAG.match, optional)):
        flag, letter, value = match.groups()
        if flag not in GLOBAL_FLAGS:
            known.setdefault(flag, str if value else bool)
        if letter:
            letters[letter] = flag

    def decorate(run: Callable[[Call], Result]) -> Callable[[Call], Result]:
        minimum, maximum = arguments or _counts(usage, optional)
        own_name = name or run.__name__.rstrip("_")
        VERBS[own_name] = Verb(
            name=own_name,
            run=run,
            usage=usage,
            summary=summary or (run.__doc__ or "").partition("\n")[0],
            minimum=minimum,
            maximum=maximum,
            flags=known,
            short=letters,
            banner=banner,
            tools=(tools,) if isinstance(tools, str) else tools,
            seconds=seconds,
            columns=columns,
            state=state,
            check=check,
        )
        return run

    return decorate

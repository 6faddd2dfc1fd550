"""Run a verb of a tool: find it, parse its flags, print its result, and return the exit code.

Output is that of RabbitMQ's tools: a sentence first unless `--quiet`, then the result; errors on
standard error, with the exit codes of `exits.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from harebell_rabbitmq_compat import exits
from harebell_rabbitmq_compat.exits import VerbFailed, WrongArguments
from harebell_rabbitmq_compat.node import Node
from harebell_rabbitmq_compat.options import CommandLine, parse
from harebell_rabbitmq_compat.refused import reason_of
from harebell_rabbitmq_compat.tables import (
    FORMATTERS,
    MACHINE_FORMATTERS,
    Rows,
    column_names,
    encoded,
    lines,
)
from harebell_rabbitmq_compat.verb import (
    CTL,
    DIAGNOSTICS,
    PLUGINS,
    QUEUES,
    RUNNING,
    STOPPED,
    STREAMS,
    UPGRADE,
    VERBS,
    Call,
    Report,
    Result,
    Verb,
)

_INTERRUPTED = 130
_MODULES = (
    *("accounts", "actions", "broker", "health", "lists", "logs", "machine", "passed", "plugins"),
    *("queues", "settings", "stored"),
)
_BOOTING_WORDS = ("help", "autocomplete")


def rabbitmqadmin() -> int:
    """Run `rabbitmqadmin`."""
    from harebell_rabbitmq_compat.management.main import main

    return main(sys.argv[1:])


def rabbitmq_server() -> int:
    """Become `harebell serve`; `-detached` starts it in a session of its own."""
    words = [word for word in sys.argv[1:] if word != "-detached"]
    command = [sys.executable, "-m", "harebell", "serve", *words]
    if len(words) == len(sys.argv[1:]):
        os.execv(sys.executable, command)  # noqa: S606  # the broker takes the place of this process
    import subprocess

    subprocess.Popen(  # noqa: S603  # the user's own arguments
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return exits.OK


def run(tool: str) -> int:
    """Run a tool with the command line of this process.

    Args:
        tool: its name.

    Returns:
        the exit code.
    """
    words = sys.argv[1:]
    try:
        return _run(tool, words)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, such as `head`: what is buffered must not fail again at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return exits.OK


rabbitmqctl = partial(run, CTL)
rabbitmq_diagnostics = partial(run, DIAGNOSTICS)
rabbitmq_plugins = partial(run, PLUGINS)
rabbitmq_queues = partial(run, QUEUES)
rabbitmq_streams = partial(run, STREAMS)
rabbitmq_upgrade = partial(run, UPGRADE)


def _run(tool: str, words: Sequence[str]) -> int:
    _load_verbs()
    first = parse(words, {}, {}, strict=False)
    name = first.arguments[0] if first.arguments else ""
    if name in _BOOTING_WORDS or first.flags.get("help"):
        return _help(tool, first)
    if not name:
        print(_overview(tool), file=sys.stderr)
        return exits.USAGE
    verb = VERBS.get(name)
    if verb is None or tool not in verb.tools:
        return _unknown(tool, name)
    try:
        line = parse(words, verb.flags, verb.short, strict=True)
        _check(verb, line)
        return _execute(verb, line)
    except WrongArguments as error:
        print(
            f"{error.heading}: {error}\nArguments given:\n\t{' '.join(words)}\n\n"
            f"{_bold('Usage')}\n\n{_usage(tool, verb)}",
            file=sys.stderr,
        )
        return error.code


def _load_verbs() -> None:
    from importlib import import_module

    for module in _MODULES:
        import_module(f"harebell_rabbitmq_compat.verbs.{module}")


def _check(verb: Verb, line: CommandLine) -> None:
    """Check the number of arguments and the format.

    Raises:
        WrongArguments: they are wrong.
    """
    count = len(line.arguments) - 1
    if count < verb.minimum:
        raise WrongArguments("not enough arguments.")
    if count > verb.maximum:
        raise WrongArguments("too many arguments.")
    if verb.columns:
        unknown = [name for name in column_names(line.arguments[1:]) if name not in verb.columns]
        if unknown:
            raise WrongArguments(f"Info key(s) {','.join(unknown)} are not supported")
    formatter = line.flags.get("formatter", "table")
    if formatter not in FORMATTERS:
        raise WrongArguments(f"formatter {formatter} is none of {', '.join(FORMATTERS)}")


def _execute(verb: Verb, line: CommandLine) -> int:
    flags = line.flags
    formatter = flags.get("formatter", "table")
    quiet = bool(flags.get("quiet") or flags.get("silent") or formatter in MACHINE_FORMATTERS)

    def say(text: str) -> None:
        if not quiet and text:
            print(text, flush=True)

    node = Node(flags)
    call = Call(node, line.arguments[1:], flags, say)
    try:
        _check_state(verb, node)
        if verb.check is not None:
            verb.check(call)
        if not quiet:
            _announce(verb, call)
        result = verb.run(call)
    except VerbFailed as error:
        if formatter in ("json", "json_stream"):
            shown: dict[str, Any] = {"message": str(error), "node": node.name, "result": "error"}
            print(encoded(shown), file=sys.stderr)
        else:
            heading = f"{error.heading}\n" if error.heading else ""
            print(f"{heading}{error}", file=sys.stderr)
        return error.code
    _print(result, formatter, flags)
    return exits.OK


def _check_state(verb: Verb, node: Node) -> None:
    """Refuse a verb for another state of the broker; a broker that does not answer has none.

    Raises:
        WrongArguments: the broker is stopped or running, and must not be.
    """
    if verb.state not in (RUNNING, STOPPED):
        return
    try:
        state = node.overview()["state"]
    except VerbFailed:
        return
    if state != verb.state:
        remedy = "start_app" if verb.state == RUNNING else "stop_app"
        word = "Start" if verb.state == RUNNING else "Stop"
        raise WrongArguments(
            f"this command requires the 'rabbit' app to be {verb.state} on the target node. "
            f"{word} it with 'rabbitmqctl {remedy}'.",
            heading="Error",
        )


def _announce(verb: Verb, call: Call) -> None:
    if verb.seconds is not None and not call.flags.get("dry-run"):
        call.say(f"Timeout: {call.flags.get('timeout', verb.seconds)} seconds ...")
    call.say(verb.announcement(call))


def _print(result: Result, formatter: str, flags: dict[str, Any]) -> None:
    if isinstance(result, Rows):
        hidden = flags.get("no-table-headers") or (flags.get("silent") and formatter == "table")
        for line in lines(result, formatter, headers=not hidden):
            print(line)
    elif isinstance(result, Report):
        print(encoded(result) if formatter in ("json", "json_stream") else result.text)
    elif result:
        print(result)


# --- help -----------------------------------------------------------------------------------------


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if sys.stderr.isatty() else text


def _usage(tool: str, verb: Verb) -> str:
    return f"{tool} [--node <node>] [--longnames] [--quiet] {verb.name} {verb.usage}".rstrip()


def _names(tool: str) -> list[str]:
    return sorted(name for name, each in VERBS.items() if tool in each.tools)


def _overview(tool: str) -> str:
    names = _names(tool)
    width = max(len(name) for name in names)
    listed = "\n".join(f"   {name.ljust(width)}  {VERBS[name].summary}" for name in names)
    return (
        f"\n{_bold('Usage')}\n\n{tool} [--node <node>] [--timeout <timeout>] [--longnames] "
        f"[--quiet] <command> [<command options>]\n\nAvailable commands:\n\n{listed}\n\n"
        f"Use '{tool} help <command>' to learn more about a specific command\n"
    )


def _help(tool: str, line: CommandLine) -> int:
    arguments = [word for word in line.arguments if word != "help"]
    if line.arguments[:1] == ["autocomplete"]:
        for name in _names(tool):
            if name.startswith(line.arguments[1] if len(line.arguments) > 1 else ""):
                print(name)
        return exits.OK
    if not arguments:
        print(_overview(tool))
        return exits.OK
    verb = VERBS.get(arguments[0])
    if verb is None or tool not in verb.tools:
        return _unknown(tool, arguments[0])
    print(f"\n{_bold('Usage')}\n\n{_usage(tool, verb)}\n\n{verb.summary}\n")
    if verb.flags:
        print(f"{_bold('Arguments and Options')}\n")
        for flag in verb.flags:
            print(f"--{flag}")
        print()
    return exits.OK


def _unknown(tool: str, name: str) -> int:
    """Say that a verb is refused or unknown; returns the exit code."""
    reason = reason_of(name)
    if reason is not None:
        print(f"Error:\n{name} is not supported: {reason}", file=sys.stderr)
        return exits.UNAVAILABLE
    from harebell.base.names import nearest

    near = nearest(name, _names(tool))
    print(f"\nCommand '{name}' not found. ", file=sys.stderr)
    print(f"Did you mean '{near}'? \n" if near else _overview(tool), file=sys.stderr)
    return exits.USAGE

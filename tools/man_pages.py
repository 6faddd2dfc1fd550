"""Manual pages in roff, made of the help texts of the commands: harebell(1) and one per verb."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

PROGRAM = "harebell"


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def _paragraphs(help_text: str) -> Iterator[str]:
    r"""Paragraphs of a help text; lines of one that begins with `\b` stay as they are."""
    for number, block in enumerate(re.split(r"\n\s*\n", help_text.strip())):
        if number:
            yield ".PP"
        lines = [line.rstrip() for line in block.split("\n")]
        if lines[0].strip() == "\b":
            yield ".nf"
            yield from (_escaped(line) for line in lines[1:])
            yield ".fi"
        else:
            yield _escaped(" ".join(line.strip() for line in lines))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield ".TP"
            yield f"\\fB{_escaped(record[0])}\\fR"
            yield _escaped(" ".join(record[1].split())) or "\\&"


def _usage(command: click.Command, context: click.Context) -> str:
    words = _escaped(" ".join(command.collect_usage_pieces(context)))
    return f"\\fB{_escaped(context.command_path)}\\fR {words}"


def _described(command: click.Command, context: click.Context) -> Iterator[str]:
    yield _usage(command, context)
    if command.help:
        yield ".PP"
        yield from _paragraphs(command.help)
    yield from _options(command, context)


def _below(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, str]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield command, name


def _actions(group: click.Group, context: click.Context) -> Iterator[str]:
    for command, name in _below(group, context):
        inner = click.Context(command, info_name=name, parent=context)
        yield f".SS {_escaped(inner.command_path.removeprefix(PROGRAM + ' '))}"
        yield from _described(command, inner)
        if isinstance(command, click.Group):
            yield from _actions(command, inner)


def _page(command: click.Command, context: click.Context, version: str, see: list[str]) -> str:
    title = context.command_path.replace(" ", "-")
    # The first sentence; a name such as config.toml in it has no space after its period.
    first = re.split(r"\.\s|\n\n", (command.help or "").strip())[0]
    summary = " ".join(first.split()).rstrip(".")
    lines = [
        f'.TH {_escaped(title.upper())} 1 "" "Harebell {version}" "Harebell"',
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(summary.removeprefix('Harebell: '))}",
        ".SH SYNOPSIS",
        _usage(command, context),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
        ".SH OPTIONS",
        *_options(command, context),
    ]
    if isinstance(command, click.Group) and context.parent is not None:
        lines += [".SH ACTIONS", *_actions(command, context)]
    lines += [".SH SEE ALSO", ",\n".join(f"\\fB{_escaped(name)}\\fR(1)" for name in see)]
    return "\n".join(lines) + "\n"


def man_pages(program: click.Group, version: str) -> dict[str, str]:
    """Make all pages.

    Args:
        program: the command line.
        version: its version.

    Returns:
        the pages, by the names of their files.
    """
    context = click.Context(program, info_name=PROGRAM)
    verbs = list(_below(program, context))
    names = [f"{PROGRAM}-{name}" for _, name in verbs]
    pages = {f"{PROGRAM}.1": _page(program, context, version, names)}
    for command, name in verbs:
        inner = click.Context(command, info_name=name, parent=context)
        pages[f"{PROGRAM}-{name}.1"] = _page(command, inner, version, [PROGRAM])
    return pages

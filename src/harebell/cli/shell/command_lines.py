"""Run command lines of `harebell` in one process: what is imported and asked once stays."""

from __future__ import annotations

import shlex
from typing import Any

import click

from harebell.admin.catalog import NOUNS
from harebell.admin.command import Form
from harebell.cli.last_result import LastResult
from harebell.cli.limits import EXIT_INTERRUPTED
from harebell.cli.main import VERBS, harebell
from harebell.cli.verb import WrongUsage
from harebell.cli.which_broker import about

_SQL = (
    *("SELECT", "WITH", "VALUES", "FROM", "INSERT", "CREATE", "DELETE", "MOVE", "RETRY"),
    *("SHOW", "DESCRIBE", "DESC", "EXPLAIN", "SET", "USE"),
)
"""First words of statements, if they are no verb of the command line."""
_VHOST = "vhost"


class CommandLines:
    """The command line of `harebell`, for one broker.

    Args:
        url: the broker, as `--url` names it; "" for that of the environment.
        last: keeps the rows that are printed.
    """

    def __init__(self, url: str, last: LastResult) -> None:
        self._url = url
        self._last = last
        self._vhost = ""
        self._defaults: dict[str, Any] = {}

    def use(self, vhost: str) -> None:
        """Let `vhost` be that of all command lines that name none."""
        self._vhost = vhost
        self._defaults = {
            noun.name: {
                command.verb: {_VHOST: vhost}
                for command in noun.commands.values()
                if any(each.name == _VHOST for each in command.parameters)
            }
            for noun in NOUNS.values()
        }

    @staticmethod
    def is_statement(line: str) -> bool:
        """Whether a line begins a statement of SQL, and is no command line."""
        first, *more = line.split(maxsplit=2)
        if first in VERBS or (more and _swapped([first, more[0]]) is not None):
            return False
        return first.startswith("(") or first.upper() in _SQL

    def words(self, line: str) -> list[str]:
        """Return the words of a command line, with its verb first.

        Raises:
            WrongUsage: a quotation has no end.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise WrongUsage(f"{str(error).lower()} in this line") from None
        if words[:1] == ["harebell"]:
            words = words[1:] or ["--help"]
        return _swapped(words) or [_noun(words[0]) or words[0], *words[1:]] if words else []

    def is_secret(self, line: str) -> bool:
        """Whether a line may have a password: by its command, or as it is not understood."""
        try:
            words = self.words(line)
        except WrongUsage:
            return True
        if not words or words[0] not in VERBS:
            return bool(words)
        noun = NOUNS.get(words[0])
        if noun is None or len(words) == 1:
            return False
        command = noun.commands.get(words[1])
        if command is None:
            return not words[1].startswith("-")
        return any(each.argument.form is Form.SECRET for each in command.parameters)

    def run(self, words: list[str]) -> None:
        """Run a command line.

        Raises:
            ClickException: it is wrong, or failed.
            Exit: it ended with an exit code and has said why.
            KeyboardInterrupt: it was ended by Ctrl-C.
        """
        if words[0] == "shell":
            raise WrongUsage("this is the shell")
        try:
            with harebell.make_context("harebell", list(words), default_map=self._defaults) as made:
                about(made, self._url, self._vhost)
                self._last.of(made)
                harebell.invoke(made)
        except click.exceptions.Exit as end:
            if end.exit_code == EXIT_INTERRUPTED:
                raise KeyboardInterrupt from None
            if end.exit_code:
                raise
        except click.Abort:
            raise KeyboardInterrupt from None
        except SystemExit as end:
            raise click.exceptions.Exit(end.code if isinstance(end.code, int) else 1) from None

    def completed(self, words: list[str], incomplete: str) -> list[str]:
        """Return what may stand after words, and begins with a text."""
        from click.shell_completion import ShellComplete

        words = _swapped(words) or ([_noun(words[0]) or words[0], *words[1:]] if words else [])
        given = ["--url", self._url] if self._url else []
        complete = ShellComplete(harebell, {"default_map": self._defaults}, "harebell", "")
        return [each.value for each in complete.get_completions([*given, *words], incomplete)]


def _noun(word: str) -> str | None:
    """Return the noun that a word names, also in the singular; None for another word."""
    for name in (word, f"{word}s", f"{word[:-1]}ies", f"{word}es"):
        if name in NOUNS:
            return name
    return None


def _swapped(words: list[str]) -> list[str] | None:
    """Return `list queues` as `queues list`; None for other words."""
    if len(words) < 2 or words[0] in VERBS:
        return None
    noun = _noun(words[1])
    if noun is None or words[0] not in NOUNS[noun].commands:
        return None
    return [noun, words[0], *words[2:]]

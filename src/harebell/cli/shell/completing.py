"""What Tab offers in a shell: commands, their options, names of the broker, and words of SQL."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.cli.shell.history import READLINE

if TYPE_CHECKING:
    from harebell.cli.shell.command_lines import CommandLines

_OWN = ("\\watch", "\\last", "\\timing", "\\use", "\\help", "\\quit")
_WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "UNION ALL"),
    *("INSERT INTO", "DELETE FROM", "MOVE FROM", "RETRY FROM", "WITH", "CASE", "CAST(", "AND"),
    *("queue('", "stream('", "lake('", "exchange('", "count(*)", "get_json_object("),
)
_IN_TABLE = re.compile(r"\b(queue|stream|exchange)\s*\(\s*'([^']*)$", re.I)
_OPEN = re.compile(rf"{_IN_TABLE.pattern}|\($", re.I)
_DELIMITERS = " \t'\"(),;="
_LISTS = {"exchange": ["exchanges", "show"]}
_QUEUES = ["queues", "show"]


class Completer:
    """Completes the words of a line, for readline.

    Args:
        commands: command lines; None if there are statements only.
        pending: returns the lines of a statement before this one.
    """

    def __init__(self, commands: CommandLines | None, pending: Callable[[], str]) -> None:
        self._commands = commands
        self._pending = pending
        self._found: list[str] = []

    def begin(self) -> None:
        """Let Tab ask this."""
        if READLINE is None:
            return
        READLINE.set_completer_delims(_DELIMITERS)
        READLINE.set_completer(self._next)
        libedit = "libedit" in (READLINE.__doc__ or "")
        READLINE.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")

    def _next(self, word: str, number: int) -> str | None:
        """Return one word after the other; readline prints what is raised here, and goes on."""
        if number == 0:
            assert READLINE is not None, "who asks is readline"
            line = READLINE.get_line_buffer()[: READLINE.get_endidx()]
            self._found = self.offered(line, word)
            if len(self._found) == 1 and not _OPEN.search(line + self._found[0]):
                # Python tells readline to append nothing but the end of a quotation.
                self._found[0] += " "
        return self._found[number] if number < len(self._found) else None

    def offered(self, line: str, word: str) -> list[str]:
        """Return what the last word of a line may become.

        Args:
            line: up to the cursor.
            word: its end, after the last character that separates words.
        """
        before = line[: len(line) - len(word)]
        if not self._pending() and not before.strip() and word.startswith("\\"):
            return [each for each in _OWN if each.startswith(word)]
        commands = self._commands
        if self._pending() or commands is None or (before and commands.is_statement(line)):
            return self._of_statement(line, word)
        found = self._of_command(commands, line, word)
        if not before.strip():
            found += [each for each in _WORDS[:1] if each.startswith(word.upper()) and word]
        return found

    def _of_command(self, commands: CommandLines, line: str, word: str) -> list[str]:
        last = re.search(r"\S*$", line)
        incomplete = last[0] if last else ""
        if line.startswith("\\use "):
            words = ["vhosts", "show"]
        else:
            try:
                words = shlex.split(line[: len(line) - len(incomplete)])
            except ValueError:
                return []  # within a quotation
        words = words[1:] if words[:1] == ["harebell"] else words
        cut = len(incomplete) - len(word)
        return [each[cut:] for each in commands.completed(words, incomplete)]

    def _of_statement(self, line: str, word: str) -> list[str]:
        table = _IN_TABLE.search(line)
        if table is not None:
            if self._commands is None:
                return []
            kind, begun = table[1].lower(), table[2]
            found = self._commands.completed(_LISTS.get(kind, _QUEUES), begun)
            return [each[len(begun) - len(word) :] for each in found]
        from harebell.pipeline.sql.embedded.kinds import MESSAGE

        # An upper-case word is offered for a lower-case one as well.
        return [
            each
            for each in (*MESSAGE, *_WORDS)
            if each.startswith(word) or (word and each.startswith(word.upper()))
        ]

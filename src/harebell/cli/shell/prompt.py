r"""A prompt for command lines and statements, and what it does itself: `\watch`, `\last`, `\use`.

Ctrl-C empties the line, or ends what runs; Ctrl-D ends the shell. Lines are edited by the module
`readline` of Python. What is piped in runs in the same way, until something fails.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from harebell.base.names import did_you_mean
from harebell.base.printable import printable
from harebell.cli.last_result import LastResult
from harebell.cli.shell.completing import Completer
from harebell.cli.shell.history import History
from harebell.cli.shell.watching import intervals, watch
from harebell.cli.verb import FAILED, Failure, WrongUsage, echo

if TYPE_CHECKING:
    from harebell.cli.shell.command_lines import CommandLines
    from harebell.cli.statement_runner import StatementRunner

OWN = ("\\watch", "\\last", "\\timing", "\\use", "\\help", "\\quit")
_LEAVE = ("exit", "quit", "\\q", "\\quit")
_ASK = ("help", "?", "\\h", "\\?", "\\help")
_GOES_ON = "      ... "
_FORMATS = ("table", "csv", "json")
OWN_HELP = """\\watch [SECONDS [TIMES]]  repeats the last line until Ctrl-C
\\last [csv|json]  shows its rows again; \\timing on|off; \\use VHOST; \\help
Ctrl-C ends what runs; exit or Ctrl-D ends the shell."""


class Prompt:
    """Read lines, and do what they say.

    Args:
        runner: returns what runs statements; called for the first of them.
        commands: runs command lines; None if there are statements only.
        history: the lines that were typed.
        last: the rows of the last line.
        hint: what is printed for the command `help`.
        timing: whether the seconds of every line are printed.
    """

    def __init__(
        self,
        runner: Callable[[], StatementRunner],
        commands: CommandLines | None,
        history: History,
        last: LastResult,
        hint: str,
        *,
        timing: bool = False,
    ) -> None:
        self._runner = runner
        self._running: StatementRunner | None = None
        self._commands = commands
        self._history = history
        self._last = last
        self._help = f"{hint}\n{OWN_HELP}"
        self._timing = timing
        self._vhost = ""
        self._text = ""
        self._before: tuple[str, Callable[[], None]] | None = None

    # --- where lines come from ------------------------------------------------------------------

    def talk(self) -> None:
        """Read lines from the terminal until the user leaves."""
        self._history.begin()
        Completer(self._commands, lambda: self._text).begin()
        while True:
            try:
                line = input(_GOES_ON if self._text else self._prompt())
                self._remember(line)
                with _shown():
                    if not self._take(line):
                        return
            except EOFError:
                echo()
                return
            except UnicodeDecodeError:
                echo("Error: this line is not UTF-8", err=True)
            except KeyboardInterrupt:
                # At the prompt, or between the end of a statement and the prompt.
                echo()
                self._text = ""

    def run(self, lines: Iterable[bytes]) -> None:
        """Do what lines say; the first that fails ends it.

        Raises:
            ClickException: it failed; the text has the number of its line.
            Exit: it ended with an exit code, and has said why.
        """
        begun = number = 0
        for number, data in enumerate(lines, 1):
            begun = begun if self._text else number
            with _placed(begun):
                try:
                    line = data.decode()
                except UnicodeDecodeError:
                    raise WrongUsage("this is not UTF-8") from None
                if not self._take(line.rstrip("\r\n")):
                    return
        if self._text.strip():
            with _placed(begun):
                self._statements(f"{self._text};")
                if self._text:
                    raise WrongUsage("a quotation or a comment of this statement has no end")

    def _prompt(self) -> str:
        vhost = printable(self._vhost)
        return f"harebell {vhost}> " if vhost else "harebell> "

    def _remember(self, line: str) -> None:
        commands = self._commands
        secret = (
            commands is not None
            and not self._text
            and line.strip() != ""
            and not _is_own(line)
            and not commands.is_statement(line)
            and commands.is_secret(line)
        )
        self._history.add(line, secret=secret)

    # --- what lines say -------------------------------------------------------------------------

    def _take(self, line: str) -> bool:
        """Do what a line says; False if it ends the shell."""
        word = line.strip()
        if self._text:
            self._statements(f"{self._text}{line}\n")
        elif word.rstrip(";").lower() in _LEAVE:
            return False
        elif word.rstrip(";").lower() in _ASK:
            echo(self._help)
        elif word.startswith("\\"):
            self._do_own(*word.split(maxsplit=1))
        elif word and not _is_comment(word):
            commands = self._commands
            if commands is None or commands.is_statement(word):
                self._statements(f"{line}\n")
            else:
                words = commands.words(word)
                self._do(word, lambda: commands.run(words))
        return True

    def _statements(self, text: str) -> None:
        """Run the statements of a text if it is complete, else keep it until it is."""
        from harebell.pipeline.sql.splitting import complete, split

        if not complete(text):
            self._text = text
            return
        self._text = ""
        for statement in split(text):
            self._do(statement.sql, self._asking(statement.sql))

    def _asking(self, sql: str) -> Callable[[], None]:
        return lambda: self._statement_runner().run(sql)

    def _statement_runner(self) -> StatementRunner:
        if self._running is None:
            self._running = self._runner()
            if self._vhost:
                self._running.use(self._vhost)
        return self._running

    def _do(self, line: str, act: Callable[[], None]) -> None:
        self._before = (line, act)
        self._last.clear()
        begun = time.monotonic()
        act()
        if self._timing:
            echo(f"({time.monotonic() - begun:.1f} s)", err=True)

    def _do_own(self, name: str, rest: str = "") -> None:
        words = rest.rstrip(";").split()
        match name:
            case "\\watch":
                if self._before is None:
                    raise WrongUsage("there is no line yet that \\watch could repeat")
                watch(*self._before, *intervals(words))
            case "\\last":
                self._show_last(" ".join(words))
            case "\\timing":
                self._timing = words[0].lower() == "on" if words else not self._timing
                echo(f"timing is {'on' if self._timing else 'off'}")
            case "\\use":
                self._use(rest.strip())
            case _:
                raise WrongUsage(f"there is no {name}: {did_you_mean(name, OWN)}")

    def _show_last(self, output: str) -> None:
        if not output:
            self._last.again()
            return
        if output not in _FORMATS:
            raise WrongUsage(f"\\last shows {', '.join(_FORMATS)}, not {output!r}")
        from harebell.cli.printed_rows import print_first

        print_first(*self._last.rows(), output)

    def _use(self, vhost: str) -> None:
        if not vhost:
            raise WrongUsage("write \\use VHOST, and / for the first one")
        self._vhost = vhost
        if self._commands is not None:
            self._commands.use(vhost)
        if self._running is not None:
            self._running.use(vhost)


def _is_comment(word: str) -> bool:
    return word.startswith("#") or word.split(maxsplit=1)[:1] == ["--"]


def _is_own(line: str) -> bool:
    word = line.strip()
    return (
        word.startswith("\\") or _is_comment(word) or word.rstrip(";").lower() in (*_LEAVE, *_ASK)
    )


@contextmanager
def _shown() -> Iterator[None]:
    """Print errors and go on."""
    try:
        yield
    except KeyboardInterrupt:
        echo("\ncancelled", err=True)
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message(), err=True)
    except click.ClickException as error:
        echo(f"Error: {error.format_message()}", err=True)
    except click.exceptions.Exit:
        pass  # the output has said why
    finally:
        sys.stdout.flush()


@contextmanager
def _placed(line: int) -> Iterator[None]:
    """Say in errors in which line it was."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.ClickException as error:
        placed = Failure(f"line {line}: {error.format_message()}")
        placed.exit_code = error.exit_code  # type: ignore[misc]  # each class has one
        raise placed from None
    except click.exceptions.Exit as end:
        echo(f"Error: line {line} ended with exit code {end.exit_code}", err=True)
        raise
    except EOFError:
        raise click.exceptions.Exit(FAILED) from None

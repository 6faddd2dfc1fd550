"""The error of an invalid configuration, which lists all its problems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harebell.base.errors import HarebellError


class ConfigError(HarebellError):
    """The configuration is invalid; the text is for the user.

    Args:
        problems: a sentence for each problem.

    Attributes:
        problems: as given.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        several = len(problems) > 1
        lines = (f"{len(problems)} problems:", *problems) if several else problems
        super().__init__("\n  ".join(lines))


class Problems:
    """Gathers errors, so that a user sees all of them at once."""

    def __init__(self) -> None:
        self._sentences: list[str] = []

    def __bool__(self) -> bool:
        """Return whether an error was noted."""
        return bool(self._sentences)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note an error of the block; the caller goes on behind the block.

        The block may look for files: of a path that this user may not see, or whose name is too
        long, the system does not say whether it is a file.
        """
        try:
            yield
        except ConfigError as error:
            self._sentences += error.problems
        except OSError as error:
            why = error.strerror or error
            self._sentences.append(f"cannot read the configuration file {error.filename}: {why}")

    def end(self) -> None:
        """Raise the noted errors as one.

        Raises:
            ConfigError: an error was noted.
        """
        if self._sentences:
            raise ConfigError(*dict.fromkeys(self._sentences))

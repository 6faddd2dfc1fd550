"""Errors of pipelines: one that cannot run, and every mistake in a file with its line.

orders.yaml:4: unknown key 'quue' in source: did you mean queue?
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harebell.base.errors import HarebellError


class PipelineError(HarebellError):
    """A pipeline cannot be described, checked or run; the text says why and how to mend it."""


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong with a file.

    Args:
        line: where, counted from 1.
        text: what, and how to mend it.
    """

    line: int
    text: str


class DescriptionError(PipelineError):
    """A file that does not describe a pipeline.

    Args:
        file: its name.
        complaints: everything that is wrong with it.
    """

    def __init__(self, file: str, complaints: list[Complaint]) -> None:
        self.complaints = sorted(complaints, key=lambda each: each.line)
        lines = (f"{file}:{each.line}: {each.text}" for each in self.complaints)
        super().__init__("\n".join(lines))


@dataclass
class Complaints:
    """Gathers what is wrong with a file.

    Args:
        file: its name.
        found: what has been found.
    """

    file: str
    found: list[Complaint] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """One more."""
        self.found.append(Complaint(line, text))

    def settle(self) -> None:
        """Raise what was found, if anything was.

        Raises:
            DescriptionError: something is wrong.
        """
        if self.found:
            raise DescriptionError(self.file, self.found)

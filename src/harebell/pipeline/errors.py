"""Errors of pipelines: one for a pipeline that cannot run, one for all errors in a file.

orders.yaml:4: unknown key 'quue' in source: did you mean queue?
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harebell.base.errors import HarebellError


class PipelineError(HarebellError):
    """A pipeline cannot be described, checked or run; the text says why and how to correct it."""


@dataclass(frozen=True)
class Complaint:
    """One error in a file.

    Args:
        line: its line, counted from 1.
        text: the error, and how to correct it.
    """

    line: int
    text: str


class DescriptionError(PipelineError):
    """A file that does not describe a valid pipeline.

    Args:
        file: its name.
        complaints: all errors.
    """

    def __init__(self, file: str, complaints: list[Complaint]) -> None:
        self.complaints = sorted(complaints, key=lambda each: each.line)
        lines = (f"{file}:{each.line}: {each.text}" for each in self.complaints)
        super().__init__("\n".join(lines))


@dataclass
class Complaints:
    """Gather the errors of a file.

    Args:
        file: its name.
        complaints: the errors so far.
    """

    file: str
    complaints: list[Complaint] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Add an error."""
        self.complaints.append(Complaint(line, text))

    def settle(self) -> None:
        """Raise the errors, if there are any.

        Raises:
            DescriptionError: there are errors.
        """
        if self.complaints:
            raise DescriptionError(self.file, self.complaints)

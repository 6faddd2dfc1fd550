"""A command that is to run somewhere in the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.admin.context import AdminContext
    from harebell.auth.users import User


class Call(NamedTuple):
    """A command that somebody wants to run.

    Args:
        command: what is asked for.
        context: the broker, and the user on whose behalf the command runs.
        arguments: those of the command's function.
        reads: whether it came to a route that only reads.
    """

    command: Command
    context: AdminContext
    arguments: dict[str, Any]
    reads: bool

    @property
    def actor(self) -> User | None:
        """The user; None for the control socket."""
        return self.context.actor

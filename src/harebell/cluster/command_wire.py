"""What brokers send each other to run a command at the owner of a store: lines of JSON.

    caller                                             owner
    {"ask": "queues.purge", "fields": {...},
     "store": 2, "actor": {...}, "reads": false,
     "places": false, "waits": true}              -->
                                                  <--  {"working": true}        any number of times
                                                  <--  {"question": {...}}      any number of times
    {"allowed": true}                             -->
                                                  <--  {"ok": true, "answer": ..., "away": [3]}
                                                       {"ok": false, "error": "...", "kind": "..."}
                                                       {"ok": false, "error": "...", "check": {...}}

and then the caller sends the next command, or ends the connection. `away` and `check` are sent
only where an answer has them. A stream of rows is answered as on the control socket, and its end is
that of the connection. So is the answer after a question. An answer that holds something, such as
messages, is followed by a line of the caller: whether its client has it. Without the line it counts
as not delivered.

    {"delivered": true}                           -->

An owner that needs long says every CLUSTER_WORKING_SECONDS that it works, if the caller waits for
that: one that says nothing for CLUSTER_SILENT_SECONDS hangs, and the caller gives up.

The actor is the user on whose behalf the command runs, or null for the control socket. The owner
looks up the users of the broker by their names, and checks their rights as if they had asked it
themselves. It knows nothing of users whom another backend has admitted: those come with their tags,
and it asks back what they may do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harebell.admin.context import CheckFailed, CommandRefused, Unavailable
from harebell.auth.authority import Question
from harebell.base.errors import ErrorKind, HarebellError

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.admin.context import AdminContext
    from harebell.auth.users import User

_UNAVAILABLE = "unavailable"
_UNAUTHORISED = 401


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


class Actor(msgspec.Struct, omit_defaults=True):
    """The user on whose behalf a command runs.

    Args:
        name: the name of the user.
        remote: whether another backend than the users of the broker has admitted the user.
        tags: those that the backend gave; not used for others.
        asks: whether the backend decides about permissions.
        internal: whether the users of the broker do.
    """

    name: str
    remote: bool = False
    tags: tuple[str, ...] = ()
    asks: bool = False
    internal: bool = False


class Delivered(msgspec.Struct):
    """What became of an answer that holds something.

    Args:
        delivered: whether the whole answer was handed to the connection of the client.
    """

    delivered: bool


class Request(msgspec.Struct):
    """A command for another owner.

    Args:
        ask: its name.
        fields: its arguments.
        store: the one that the owner is expected to have.
        actor: the user; None for the control socket.
        reads: whether it only reads, as the HTTP method says.
        places: whether the owner looks itself where the command runs: a broker that stands by does
            not. Such a command has no user.
        waits: whether the owner says from time to time that it still works.
    """

    ask: str
    fields: dict[str, Any]
    store: int
    actor: Actor | None
    reads: bool
    places: bool = False
    waits: bool = False


class Reply(msgspec.Struct):
    """A line of the owner.

    Args:
        ok: whether the command was not refused.
        answer: its answer, not decoded yet.
        rows: rows of a stream.
        error: why it is refused.
        kind: the kind of the refusal.
        check: the answer of a health check that has failed.
        question: what the user may do, if the owner asks that.
        away: the stores that are missing in the answer.
        working: whether the answer is still being made; the other fields say nothing then.
    """

    ok: bool = False
    answer: msgspec.Raw = msgspec.Raw(b"null")
    rows: list[dict[str, Any]] | None = None
    error: str = ""
    kind: str = ""
    check: dict[str, Any] | None = None
    question: Question | None = None
    away: list[int] = []
    working: bool = False


class Allowed(msgspec.Struct):
    """The answer to a question."""

    allowed: bool


def refused(error: Exception) -> dict[str, Any]:
    """Return the line for a refusal."""
    kind = getattr(error, "kind", None)
    answer: dict[str, Any] = {"ok": False, "error": str(error)}
    if isinstance(error, CheckFailed):
        return {**answer, "check": error.answer}
    if isinstance(error, Unavailable):
        return {**answer, "kind": _UNAVAILABLE}
    if getattr(error, "status", 0) == _UNAUTHORISED:
        kind = ErrorKind.ACCESS_REFUSED
    return {**answer, "kind": kind.name if isinstance(kind, ErrorKind) else ""}


def refusal_of(reply: Reply) -> HarebellError:
    """Return the refusal of a line."""
    if reply.check is not None:
        failed = CheckFailed(reply.error)
        failed.answer = reply.check
        return failed
    if reply.kind == _UNAVAILABLE:
        return Unavailable(reply.error)
    known = ErrorKind.__members__.get(reply.kind, ErrorKind.PRECONDITION_FAILED)
    return CommandRefused(reply.error, known)

"""What the audit trail says of an administrative act, and which acts it has.

    time      when it was done, in milliseconds, as text
    user      who has done it; the control socket's is "rmq-cli"
    peer      from where: an address, or the process on this machine
    door      "http", "control", or "amqp 0-9-1" and the other versions
    act       noun and verb, such as "queues.delete"
    vhost, object        what it was done to
    result    "done", "refused" or "failed", and `reason`
    arguments            what was asked for
    before, after        the object; null where there is none

Commands of the control socket and of HTTP pass the `Dispatcher`, which has them written here. AMQP
declares, deletes, binds and purges by the model, which tells its `Events`. Passwords, hashes of
passwords and other secrets are left out by their names, and passwords in URLs by their form.

States of objects come from the commands that show them, so they are right in a cluster, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from harebell.admin.catalog import find
from harebell.admin.command import ADMINISTRATOR, Form, Row
from harebell.admin.context import CommandRefused
from harebell.admin.limits import (
    AUDIT_ITEMS,
    AUDIT_SEARCHES,
    AUDIT_TEXT_CHARACTERS,
    AUDIT_USER_BYTES,
    AUDIT_USER_LINES,
)
from harebell.admin.long_text import LongText
from harebell.admin.rows.common import time_text
from harebell.auth.authority import Undecided
from harebell.base.errors import HarebellError
from harebell.base.slices import Slices
from harebell.model.events import TOOL_USER

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.admin.context import AdminContext

DONE, REFUSED, FAILED = "done", "refused", "failed"
RESULTS = (DONE, REFUSED, FAILED)
HIDDEN = "(secret)"
"""Stands for a secret."""
LEFT_OUT = "audit.left-out"
"""The act of a line that says how many acts of a user have no line of their own."""

_SECRET_NAME = re.compile(
    r"pass(word|phrase|wd|$)|secret|token|credential|private|_hash$", re.IGNORECASE
)
# It takes all up to the next space also where no password is: a failed match would be tried again
# from each of the addresses after it, which takes time by the square of the length.
_URL_LOGIN = re.compile(r"(://[^/\s:@]*):(\S*)")
_OBJECT = (
    *("component", "source", "destination", "queue", "group", "publisher", "xid", "user", "users"),
    *("name", "exchange", "key", "id", "to", "target", "store", "node"),
)
"""Arguments that name the object of an act, in the order in which it has them."""
_DEPTH = 6
_PER_MS = 1_024
_MINUTE_MS = 60_000
_DAY_MINUTES = 1_440

Run = Callable[["Command", "AdminContext", dict[str, Any], list[int]], Any]


def number_at(ms: int) -> int:
    """Return the least number of a line of that time, in milliseconds since 1970."""
    return ms * _PER_MS


class Trail(Protocol):
    """Where lines are kept."""

    def add(self, act: Mapping[str, Any]) -> int:
        """Write a line; return its number, 0 if it could not be written."""

    def newest_first(self, before: int, wanted: bytes = b"") -> Iterator[Row | None]:
        """Yield the lines before a number, the newest first, and None after each block of a file.

        Args:
            before: a number.
            wanted: octets that a line must have, in small letters.
        """


class _State(NamedTuple):
    """How the state of an object is found.

    Args:
        show: the command that shows it.
        arguments: returns the arguments of that command; None if the act has no object.
        members: those of the answer that an act may change; () for that which it names.
    """

    show: str
    arguments: Callable[[Mapping[str, Any]], dict[str, Any] | None]
    members: tuple[str, ...] = ()


def _with(*names: str, **renamed: str) -> Callable[[Mapping[str, Any]], dict[str, Any] | None]:
    """Return what takes some arguments of an act; those that are `renamed` have another name."""
    wanted = {**{name: name for name in names}, **renamed}

    def take(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        taken = {name: arguments.get(of) for name, of in wanted.items()}
        return None if None in taken.values() else taken

    return take


def _ends(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    taken = _with("vhost", "source", "destination")(arguments)
    kind = arguments.get("kind") or ("e" if arguments.get("to_exchange") else "q")
    return None if taken is None else {**taken, "kind": kind}


_HASH = "password_hash"
_QUEUE = ("type", "durable", "auto_delete", "exclusive", "arguments", "messages")
_EXCHANGE = ("type", "durable", "auto_delete", "internal", "arguments")
_VHOST = ("description", "tags", "default_queue_type", "durability", "tracing", "protected")
_USER = ("tags", "limits", "loopback_only", _HASH)
_POLICY = ("pattern", "apply-to", "priority", "definition")
_STATES = {
    "queues": _State("queues.show", _with("name", "vhost"), _QUEUE),
    "exchanges": _State("exchanges.show", _with("name", "vhost"), _EXCHANGE),
    "bindings": _State("bindings.bindings-between", _ends, ("routing_key", "arguments")),
    "users": _State("users.state", _with("name"), _USER),
    "permissions": _State(
        "permissions.show-permissions", _with("user", "vhost"), ("configure", "write", "read")
    ),
    "topic-permissions": _State(
        "topic-permissions.topic-permissions-by-exchange",
        _with("user", "vhost"),
        ("exchange", "write", "read"),
    ),
    "vhosts": _State("vhosts.show", _with("name"), _VHOST),
    "trace": _State("vhosts.show", _with(name="vhost"), ("tracing",)),
    "policies": _State("policies.show", _with("name", "vhost"), _POLICY),
    "operator-policies": _State("operator-policies.show", _with("name", "vhost"), _POLICY),
    "parameters": _State("parameters.show", _with("component", "name", "vhost"), ("value",)),
    "global-parameters": _State("global-parameters.show-global", _with("name"), ("value",)),
    "limits": _State("limits.list", _with("vhost"), ("limit", "value")),
    "config": _State("config.effective", lambda named: {} if "key" in named else None),
}
_USER_LIMITS = _State("users.state", _with(name="user"), ("limits",))
"""The states of the objects of a noun. Acts of other nouns have the answer as `after`."""
_NO_STATE = frozenset(
    (
        *("queues.purge", "queues.retry-now", "queues.queue-action", "queues.move", "queues.copy"),
        *("queues.remove", "queues.retry", "queues.discard"),
        *("queues.release-waiting", "queues.cancel-waiting"),
        *("exchanges.release-delayed", "exchanges.cancel-delayed"),
        *("users.authenticate", "users.bulk-delete"),
    )
)
"""Acts of these nouns that change no object, or several."""
_OF_EVENTS = {
    "queue.created": "queues.declare",
    "queue.deleted": "queues.delete",
    "queue.purged": "queues.purge",
    "queue.refused": "queues.configure",
    "exchange.created": "exchanges.declare",
    "exchange.deleted": "exchanges.delete",
    "exchange.refused": "exchanges.configure",
    "binding.created": "bindings.add",
    "binding.deleted": "bindings.delete",
}
"""The acts of AMQP by the routing keys of their events."""

_VERSIONS = {"1-0": "1.0"}
"""Versions of AMQP with other names than those of their connections."""


class Auditor:
    """Writes acts to the audit trail, and publishes them as events.

    `AUDIT_USER_LINES` in a minute and `AUDIT_USER_BYTES` in a day are for each user what is
    refused, and as much again what is done over AMQP or by one who is no administrator: no user
    pushes out the lines of others. One more line in a minute says how many acts have none.

    Args:
        context: the broker.
        trail: where lines are kept.
        clock: returns milliseconds since 1970.
    """

    def __init__(self, context: AdminContext, trail: Trail, clock: Callable[[], int]) -> None:
        self._context = context
        self._trail = trail
        self._clock = clock
        self._minute = 0
        # By user, and whether it is what is refused: that hides nothing of what is done.
        self._limited: Counter[tuple[str, bool]] = Counter()
        self._bytes: Counter[tuple[str, bool]] = Counter()
        self._left_out: Counter[str] = Counter()
        self._searches: Counter[str] = Counter()

    # --- commands ---------------------------------------------------------------------------------

    def recorded(
        self,
        run: Run,
        command: Command,
        context: AdminContext,
        arguments: dict[str, Any],
        away: list[int],
    ) -> Slices[Any]:
        """Run a command, and write a line for it.

        Args:
            run: runs a command where its subject is.
            command: the act.
            context: the broker, and who acts.
            arguments: those of the act.
            away: gets the numbers of the stores that are missing in the answer.
        """
        given = _given(command, arguments)
        before = yield from self._state(run, command, arguments)
        try:
            answer = yield from _result(run(command, context, arguments, away))
        except Undecided:
            # The command runs again from its start.
            raise
        except HarebellError as error:
            self._command(command, context, given, result=REFUSED, reason=str(error))
            raise
        except Exception as error:
            self._command(command, context, given, result=FAILED, reason=repr(error))
            raise
        after: Any
        if _state_of(command, arguments) is None:
            after = answer if isinstance(answer, dict) else None
        else:
            after = yield from self._state(run, command, arguments)
        _hide_hashes(before, after)
        self._command(command, context, given, result=DONE, before=before, after=after)
        return answer

    def refused(
        self, command: Command, context: AdminContext, arguments: Mapping[str, Any], reason: str
    ) -> None:
        """Write a line for a command that was refused."""
        given = _given(command, arguments)
        self._command(command, context, given, result=REFUSED, reason=reason)

    def _command(
        self, command: Command, context: AdminContext, given: Mapping[str, Any], **more: Any
    ) -> None:
        actor = context.actor
        self._write(
            {
                "user": TOOL_USER if actor is None else actor.name,
                "peer": context.peer,
                "door": context.via,
                "act": command.name,
                "vhost": command.vhost_of(given),
                "object": _object(given),
                "arguments": given,
                **more,
            },
            limited=actor is not None and ADMINISTRATOR not in actor.tags,
        )

    def _state(
        self, run: Run, command: Command, arguments: Mapping[str, Any]
    ) -> Slices[dict[str, Any] | list[Any] | None]:
        """Return the object of an act as it is now; None if there is none."""
        state = _state_of(command, arguments)
        asked = None if state is None else state.arguments(arguments)
        show = None if state is None or asked is None else find(state.show)
        if state is None or asked is None or show is None:
            return None
        members = state.members or (str(arguments.get("key")),)
        try:
            shown = yield from _result(run(show, self._context, asked, []))
        except HarebellError:
            return None
        if isinstance(shown, Mapping):
            return {name: shown[name] for name in members if name in shown}
        rows = [{name: row[name] for name in members if name in row} for row in shown]
        return rows or None

    # --- AMQP -------------------------------------------------------------------------------------

    def over_amqp(self, key: str, facts: Mapping[str, Any], refusal: str) -> None:
        """Write a line for what a connection has done.

        Args:
            key: the routing key of its event.
            facts: the object.
            refusal: why it is refused; "" if it is done.
        """
        connection = self._context.broker.events.source
        turn = self._context.registry.turns.current
        if connection is None or turn is not connection.account:
            # The broker itself, or a command, which has its line.
            return
        made = key.endswith("created") and not refusal
        self._write(
            {
                "user": connection.user.name,
                "peer": str(connection.peer),
                "door": f"amqp {_VERSIONS.get(connection.version, connection.version)}",
                "act": _OF_EVENTS[key],
                "vhost": facts["vhost"],
                "object": _object(facts) or f"{facts['source_name']} {facts['destination_name']}",
                "result": REFUSED if refusal else DONE,
                **({"reason": refusal, "arguments": facts} if refusal else {}),
                "before": None if made or refusal else facts,
                "after": facts if made else None,
            },
            limited=True,
        )

    # --- lines ------------------------------------------------------------------------------------

    def _write(self, act: dict[str, Any], *, limited: bool) -> None:
        # The act is done: a fault here must not refuse it.
        self._context.broker.failures.guard(self._write_line, act, limited)

    def _write_line(self, act: dict[str, Any], limited: bool) -> None:
        now = self._clock()
        if (minute := now // _MINUTE_MS) != self._minute:
            if minute // _DAY_MINUTES != self._minute // _DAY_MINUTES:
                self._bytes.clear()
            self._minute = minute
            self._write_left_out(now)
        refused = act["result"] == REFUSED
        limited = limited or refused
        key = act["user"], refused
        if limited:
            self._limited[key] += 1
            if self._limited[key] > AUDIT_USER_LINES or self._bytes[key] >= AUDIT_USER_BYTES:
                self._left_out[act["user"]] += 1
                return
        line = {"time": time_text(now), **plain(act)}
        if limited:
            self._bytes[key] += len(msgspec.json.encode(line))
        self._trail.add(line)
        facts = {
            name: line[name]
            for name in ("user", "peer", "door", "act", "vhost", "object", "result")
        }
        self._context.broker.events.note(f"audit.{act['act']}", facts)

    def _write_left_out(self, now: int) -> None:
        for user, count in self._left_out.items():
            self._trail.add(
                {
                    "time": time_text(now),
                    "user": plain(user),
                    "peer": "",
                    "door": "",
                    "act": LEFT_OUT,
                    "vhost": "",
                    "object": "",
                    "result": DONE,
                    "after": {"acts": count},
                }
            )
        self._limited.clear()
        self._left_out.clear()

    @contextmanager
    def search(self, user: str, before: int, wanted: bytes) -> Iterator[Iterator[Row | None]]:
        """Return the lines before a number, the newest first, and None between two blocks.

        Args:
            user: who searches.
            before: a number.
            wanted: octets that a line must have, in small letters.

        Raises:
            CommandRefused: the user has other searches under way.
        """
        if self._searches[user] >= AUDIT_SEARCHES:
            raise CommandRefused(
                f"{AUDIT_SEARCHES} searches of user '{user}' in the audit trail are under way: "
                "wait for one of them"
            )
        self._searches[user] += 1
        try:
            yield self._trail.newest_first(before, wanted)
        finally:
            self._searches[user] -= 1
            if not self._searches[user]:
                del self._searches[user]


def _state_of(command: Command, arguments: Mapping[str, Any]) -> _State | None:
    """Return how the state of the object of an act is found; None if it has none."""
    if command.name in _NO_STATE:
        return None
    if command.noun.name == "limits" and arguments.get("user"):
        return _USER_LIMITS
    state = _STATES.get(command.noun.name)
    return None if state is None or state.arguments(arguments) is None else state


def _result(answer: Any) -> Slices[Any]:
    """Return the answer of a command, a list of rows as a list."""
    if isinstance(answer, Generator):
        answer = yield from answer
    return list(answer) if isinstance(answer, Iterator) else answer


def _object(given: Mapping[str, Any]) -> str:
    names = (given[name] for name in _OBJECT if given.get(name) not in (None, "", []))
    return " ".join(",".join(each) if isinstance(each, list) else str(each) for each in names)


def _given(command: Command, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an act for its line; the command may empty a long one."""
    secret = {each.keyword for each in command.parameters if each.argument.form is Form.SECRET}
    return {
        name.rstrip("_"): HIDDEN if name in secret else _summed(name, value)
        for name, value in arguments.items()
        if value is not None
    }


def _summed(name: str, value: Any) -> Any:
    """Return an argument; of a document that may have any size, how much it has.

    What is written into messages is for those who may read them: a line has no body and no header.
    """
    if isinstance(value, LongText):
        return {"characters": value.length}
    if name == "payload" and isinstance(value, str):
        return {"characters": len(value)}
    if name == "headers" and isinstance(value, Mapping):
        return sorted(value)
    if name == "definitions" and isinstance(value, Mapping):
        return {key: len(each) for key, each in value.items() if isinstance(each, list)}
    return value


def _hide_hashes(before: Any, after: Any) -> None:
    """Say whether a user has a password, and whether it was changed, instead of its hash."""
    hashes = [each.pop(_HASH, None) if isinstance(each, dict) else None for each in (before, after)]
    for state, each in zip((before, after), hashes, strict=True):
        if each is not None:
            state["has_password"] = bool(each)
    if None not in hashes and hashes[0] != hashes[1]:
        after["has_new_password"] = True


def _is_secret(name: str, value: Any) -> bool:
    return bool(value) and value is not True and _SECRET_NAME.search(name) is not None


def _without_password(login: re.Match[str]) -> str:
    user, rest = login.groups()
    _, at, place = rest.rpartition("@")
    return f"{user}:{HIDDEN}@{place}" if at else login[0]


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value for a line: without secrets, as JSON has it, and not too long."""
    if value is None or value is True or value is False:
        return value
    # Nearly all texts are names, which are written as they are.
    if type(value) is str and value.isascii() and len(value) < AUDIT_TEXT_CHARACTERS:
        return _URL_LOGIN.sub(_without_password, value) if "://" in value else value
    if isinstance(value, Mapping):
        if depth == _DEPTH:
            return "…"
        items = islice(value.items(), AUDIT_ITEMS)
        members = {
            plain(str(name)): HIDDEN if _is_secret(str(name), each) else plain(each, depth + 1)
            for name, each in items
        }
        if len(value) > AUDIT_ITEMS:
            members["…"] = f"{len(value) - AUDIT_ITEMS} more"
        return members
    if isinstance(value, list | tuple | set | frozenset):
        if depth == _DEPTH:
            return "…"
        listed = [plain(each, depth + 1) for each in islice(value, AUDIT_ITEMS)]
        if len(value) > AUDIT_ITEMS:
            listed.append(f"… {len(value) - AUDIT_ITEMS} more")
        return listed
    from harebell.wire.json_values import shown

    text = shown(value, iso=True)
    if not isinstance(text, str):
        return text
    text = _URL_LOGIN.sub(_without_password, text)
    short = AUDIT_TEXT_CHARACTERS
    return text if len(text) <= short else f"{text[:short]}… ({len(text)} characters)"

"""Lines of the audit trail: which acts have one, and what is left out of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from harebell.admin.audit import Auditor
from harebell.admin.catalog import commands, find
from harebell.admin.context import CommandRefused
from harebell.admin.limits import (
    AUDIT_ITEMS,
    AUDIT_SEARCHES,
    AUDIT_USER_BYTES,
    AUDIT_USER_LINES,
)
from harebell.auth.permissions import Permissions
from harebell.auth.users import User
from harebell.base.slices import at_once
from tests.unit.admin.commands.site import Site

LOOKS = {
    *("bindings.list", "definitions.try", "exchanges.explain", "exchanges.publish", "limits.list"),
    *("queues.counters", "queues.get", "service.figures", "stages.list", "streams.list-super"),
    *("sql.ask", "sql.cancel", "transactions.list", "users.list", "users.state"),
    *("policies.preview", "operator-policies.preview"),
}
"""Commands without a route for GET that change nothing, or messages alone."""
MINUTE_MS = 60_000
DAY_MS = 86_400_000


class Kept:
    """A trail in memory."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def add(self, act: Mapping[str, Any]) -> int:
        """Keep a line."""
        self.lines.append(dict(act))
        return len(self.lines)

    def newest_first(self, before: int, wanted: bytes = b"") -> Iterator[dict[str, Any] | None]:
        """Yield the lines."""
        yield from reversed(self.lines)


class Trailed:
    """A broker whose commands leave lines."""

    def __init__(self) -> None:
        self.site = Site()
        self.kept = Kept()
        self.ms = 0
        self.auditor = Auditor(self.site.context, self.kept, lambda: self.ms)

    def run(self, name: str, user: User | None = None, /, **fields: Any) -> Any:
        """Run a command on behalf of a user; returns its answer."""
        command = find(name)
        assert command is not None, name

        def run(command: Any, context: Any, arguments: Any, _away: Any) -> Any:
            return command.run(context, **arguments)

        context = self.site.context.on_behalf_of(user, "http", "192.0.2.7")
        arguments = command.arguments_of(fields)
        return at_once(self.auditor.recorded(run, command, context, arguments, []))


@pytest.fixture
def trailed() -> Trailed:
    """A broker without lines."""
    return Trailed()


def test_every_command_is_an_act_or_changes_nothing() -> None:
    assert {each.name for each in commands() if not each.reads and not each.acts} == LOOKS


def test_every_act_says_what_it_was_done_to_and_none_of_its_secrets(trailed: Trailed) -> None:
    """Generated: each act with a text for each of its arguments."""
    for command in commands():
        if not command.acts:
            continue
        arguments: dict[str, Any] = {each.keyword: each.name for each in command.parameters}
        trailed.ms += MINUTE_MS
        trailed.auditor.refused(command, trailed.site.context, arguments, "no")
        line = trailed.kept.lines[-1]
        assert line["act"] == command.name
        assert line["vhost"] == command.vhost_of(arguments)
        named = {"name", "user", "users", "key", "xid", "publisher", "id", "queue", "source"}
        assert bool(line["object"]) or not named.intersection(arguments), command.name
        secret = [name for name in ("password", "password_hash") if name in arguments]
        assert all(line["arguments"][name] == "(secret)" for name in secret), command.name


def test_what_a_retry_writes_into_messages_is_in_no_line(trailed: Trailed) -> None:
    trailed.run("queues.declare", name="dead")
    fields = {"payload": "pay 5 to ann", "headers": {"tenant": "acme", "iban": None}}
    for command in ("queues.retry", "dead-letters.retry"):
        trailed.run(command, name="dead", where="true", **fields)
        line = trailed.kept.lines[-1]
        assert line["arguments"]["payload"] == {"characters": 12}
        assert line["arguments"]["headers"] == ["iban", "tenant"]
        assert "ann" not in str(line)
        assert "acme" not in str(line)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": "p"}, {"password": "(secret)"}),
        ({"client_secret": {"a": 1}}, {"client_secret": "(secret)"}),
        ({"hash-header": "x"}, {"hash-header": "x"}),
        ({"\udcff\n": "\udcfe\n"}, {"base64:/wo=": "base64:/go="}),
        ({b"\xff": 2**80}, {"b'\\xff'": str(2**80)}),
        ("amqps://u:p@q@host/v", "amqps://u:(secret)@host/v"),
        ("amqp://host:5672/v", "amqp://host:5672/v"),
        ("a://u:p@h b://u:p@h", "a://u:(secret)@h b://u:(secret)@h"),
        ("://a:" * 400_000, "://a:" * 200 + "… (2000000 characters)"),
        ([{"api_token": "t"}, None], [{"api_token": "(secret)"}, None]),
        (b"\xff", "base64:/w=="),
        ("x" * 1_001, "x" * 1_000 + "… (1001 characters)"),
        ([0] * (AUDIT_ITEMS + 2), [0] * AUDIT_ITEMS + ["… 2 more"]),
        ([[[[[[[[1]]]]]]]], [[[["…"]]]]),
    ],
)
def test_values_are_short_and_without_secrets(trailed: Trailed, value: Any, shown: Any) -> None:
    command = find("global-parameters.set")
    assert command is not None
    arguments = {"name": "n", "value": value}
    trailed.auditor.refused(command, trailed.site.context, arguments, "no")
    assert trailed.kept.lines[-1]["arguments"]["value"] == shown


def test_limits_and_permissions_have_their_states(trailed: Trailed) -> None:
    trailed.run("users.add", name="ann", password="p")
    trailed.run("permissions.set", user="ann", configure="", write="^a", read=".*")
    trailed.run("limits.set", user="ann", max_channels=3)
    trailed.run("limits.set", vhost="/", max_queues=5)
    trailed.run("limits.clear", vhost="/")
    trailed.run("users.delete", name="ann")
    states = [(line["before"], line["after"]) for line in trailed.kept.lines]
    new = {"tags": [], "limits": {}, "loopback_only": False, "has_password": True}
    assert states == [
        (None, new),
        (None, {"configure": "", "write": "^a", "read": ".*"}),
        ({"limits": {}}, {"limits": {"max-channels": 3}}),
        (None, [{"limit": "max-queues", "value": 5}]),
        ([{"limit": "max-queues", "value": 5}], None),
        ({**new, "limits": {"max-channels": 3}}, None),
    ]


def test_an_act_without_an_object_has_its_answer(trailed: Trailed) -> None:
    trailed.run("queues.declare", name="q")
    trailed.run("queues.purge", name="q")
    assert trailed.kept.lines[-1]["after"] == {"name": "q", "vhost": "/", "messages": 0}


def test_a_user_does_not_push_out_the_lines_of_others(trailed: Trailed) -> None:
    clerk, operator = User("clerk", "", tags=("management",)), User("op", "", ("administrator",))
    for _ in range(AUDIT_USER_LINES + 7):
        with pytest.raises(CommandRefused):
            trailed.run("users.delete", clerk, name="none")
    trailed.run("vhosts.add", operator, name="v")
    assert len(trailed.kept.lines) == AUDIT_USER_LINES + 1
    trailed.ms += MINUTE_MS
    trailed.run("vhosts.delete", operator, name="v")
    left_out, line = trailed.kept.lines[-2:]
    assert (left_out["act"], left_out["user"]) == ("audit.left-out", "clerk")
    assert left_out["after"] == {"acts": 7}
    assert line["act"] == "vhosts.delete"


def test_a_user_has_a_share_of_the_trail_in_a_day(trailed: Trailed) -> None:
    clerk, name = User("clerk", "", tags=("management",)), "n" * 10_000
    clerk.permissions["/"] = Permissions(".*", "", "")
    while (left_out := trailed.kept.lines[-1:]) == [] or left_out[0]["act"] != "audit.left-out":
        trailed.ms += MINUTE_MS
        for _ in range(AUDIT_USER_LINES):
            with pytest.raises(CommandRefused):
                trailed.run("users.delete", clerk, name=name)
    size = sum(len(json.dumps(each)) for each in trailed.kept.lines)
    assert size < AUDIT_USER_BYTES * 1.1
    # What is refused hides nothing of what is done.
    trailed.run("queues.declare", clerk, name="q")
    assert trailed.kept.lines[-1]["act"] == "queues.declare"
    trailed.ms += DAY_MS
    with pytest.raises(CommandRefused):
        trailed.run("users.delete", clerk, name="again")
    assert trailed.kept.lines[-1]["object"] == "again"


def test_a_user_has_few_searches_at_a_time(trailed: Trailed) -> None:
    held = [trailed.auditor.search("ann", 1, b"") for _ in range(AUDIT_SEARCHES)]
    for each in held:
        each.__enter__()
    with pytest.raises(CommandRefused, match="under way"), trailed.auditor.search("ann", 1, b""):
        pass
    with trailed.auditor.search("bob", 1, b""):
        pass
    held[0].__exit__(None, None, None)
    with trailed.auditor.search("ann", 1, b""):
        pass


def test_a_command_that_fails_by_a_fault_has_a_line(trailed: Trailed) -> None:
    trailed.site.context.reload = lambda: 1 // 0
    with pytest.raises(ZeroDivisionError):
        trailed.run("config.reload")
    assert trailed.kept.lines[-1]["result"] == "failed"

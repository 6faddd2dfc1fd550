"""`declare`, `bindings add` and `bindings delete`, and what wrong names of actions suggest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import done, error_of, listed, run
from tests.running import RunningBroker


def _row(broker: RunningBroker, noun: str, name: str) -> dict[str, Any]:
    (row,) = [each for each in listed(broker, noun) if each["name"] == name]
    return row


def test_a_queue_is_declared_with_what_the_flags_say(own: RunningBroker) -> None:
    said = done(own, "queues", "declare", "orders")
    assert said == "queue 'orders' in vhost '/' was declared"
    row = _row(own, "queues", "orders")
    assert (row["type"], row["durable"], row["auto_delete"]) == ("classic", True, False)
    flags = ["--type", "quorum", "-a", "x-max-length:=5", "-a", "x-overflow=reject-publish"]
    done(own, "queues", "declare", "log", *flags)
    row = _row(own, "queues", "log")
    assert row["type"] == "quorum"
    assert row["arguments"]["x-max-length"] == 5
    assert row["arguments"]["x-overflow"] == "reject-publish"
    done(own, "queues", "declare", "short", "--transient", "--auto-delete")
    row = _row(own, "queues", "short")
    assert (row["durable"], row["auto_delete"]) == (False, True)
    url = f"amqp://guest:guest@127.0.0.1:{own.port}/%2F"
    assert done(own, "publish", "--url", url, "-r", "orders", "x").startswith("1 message")


def test_an_equal_declaration_is_no_failure(own: RunningBroker) -> None:
    for noun, thing in (("queues", "queue"), ("exchanges", "exchange")):
        done(own, noun, "declare", "one")
        said = done(own, noun, "declare", "one")
        assert said == f"{thing} 'one' in vhost '/' is there already, and like that"
        result = run(own, noun, "declare", "one", "--transient")
        assert result.returncode == 1
        assert "inequivalent arg 'durable'" in error_of(result)


def test_an_exchange_is_declared_with_what_the_flags_say(own: RunningBroker) -> None:
    done(own, "exchanges", "declare", "logs", "--type", "topic", "--internal", "--auto-delete")
    row = _row(own, "exchanges", "logs")
    wanted = {"type": "topic", "internal": True, "auto_delete": True, "durable": True}
    assert {key: row[key] for key in wanted} == wanted
    done(own, "exchanges", "declare", "main", "-a", "alternate-exchange=logs")
    assert _row(own, "exchanges", "main")["arguments"] == {"alternate-exchange": "logs"}


def test_bindings_are_added_and_deleted(own: RunningBroker) -> None:
    done(own, "queues", "declare", "q")
    done(own, "exchanges", "declare", "e", "--type", "headers")
    said = done(own, "bindings", "add", "amq.topic", "q", "-r", "a.#")
    assert said == "queue 'q' in vhost '/' is bound to exchange 'amq.topic' with the key 'a.#'"
    said = done(own, "bindings", "add", "amq.topic", "e", "--to-exchange", "-a", "n:=1")
    assert said == "exchange 'e' in vhost '/' is bound to exchange 'amq.topic'"
    rows = [row for row in listed(own, "bindings") if row["source_name"]]
    assert [(row["destination_kind"], row["routing_key"]) for row in rows] == [
        ("queue", "a.#"),
        ("exchange", ""),
    ]
    assert rows[1]["arguments"] == {"n": 1}
    said = done(own, "bindings", "delete", "amq.topic", "q", "-r", "a.#")
    assert "queue 'q' in vhost '/' is no longer bound to exchange 'amq.topic'" in said
    result = run(own, "bindings", "delete", "amq.topic", "e", "--to-exchange")
    assert result.returncode == 1
    assert "no binding from exchange 'amq.topic' to 'e' with the key ''" in error_of(result)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("bindings add nowhere q", 1, "no exchange 'nowhere' in vhost '/': `harebell exchanges"),
        ("bindings add amq.topic q", 1, "no queue 'q' in vhost '/': `harebell queues list` shows"),
        ("queues declare amq.q", 1, "queue name 'amq.q' contains reserved prefix 'amq.*'"),
        ("exchanges declare x --type nonsense", 1, "unknown exchange type 'nonsense'"),
        ("queues declare q -a x-max-length=many", 1, "invalid arg 'x-max-length'"),
        ("queues declare q -a nothing", 2, "'nothing' is no argument: write name=text"),
        ("queues create q", 2, "No action 'create': did you mean declare?"),
        ("queues drop q", 2, "No action 'drop': did you mean delete?"),
        ("bindings bind a b", 2, "No action 'bind': did you mean add?"),
        ("bindings unbind a b", 2, "No action 'unbind': did you mean delete?"),
        ("users create a", 2, "No action 'create': did you mean add?"),
        ("declare q", 2, "No verb 'declare': did you mean queues declare or exchanges declare"),
        ("bind a b", 2, "No verb 'bind': did you mean bindings add?"),
        ("unbind a b", 2, "No verb 'unbind': did you mean bindings delete?"),
        ("purge q", 2, "No verb 'purge': did you mean queues purge?"),
        ("sevre", 2, "No verb 'sevre': did you mean serve?"),
    ],
)
def test_mistakes_are_named(own: RunningBroker, words: str, code: int, text: str) -> None:
    result = run(own, *words.split())
    assert result.returncode == code
    assert text in error_of(result)

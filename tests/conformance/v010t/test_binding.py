"""The class binding: what of a binding there is not (class 130)."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from tests.conformance.v010t.peer import Peer

NONE: dict[str, bool] = {}


@pytest.fixture
def bound(peer: Peer, name: str) -> Peer:
    """Queue `name` bound to an exchange of that name by "k" and arguments, `other` by "o"."""
    peer.run(m.ExchangeDeclare(name, "topic"))
    peer.queue(name)
    peer.queue(f"{name}-other")
    peer.run(m.QueueBind(name, name, "k", arguments={"a": 1}))
    peer.run(m.QueueBind(f"{name}-other", name, "o"))
    return peer


@pytest.mark.parametrize(
    ("asked", "flags"),
    [
        ({}, NONE),
        ({"queue": ""}, NONE),
        ({"queue": "-other"}, NONE),
        ({"queue": "", "routing_key": "k"}, NONE),
        ({"queue": "", "routing_key": "k", "arguments": {"a": 1}}, NONE),
        ({"routing_key": "o"}, NONE),
        ({"arguments": {"a": 1}}, NONE),
        ({"queue": "-missing"}, {"queue_not_found": True}),
        ({"routing_key": "x"}, {"key_not_matched": True}),
        ({"arguments": {"a": 2}}, {"args_not_matched": True}),
        ({"queue": "-other", "routing_key": "k"}, {"key_not_matched": True}),
        ({"queue": "-other", "arguments": {"a": 1}}, {"args_not_matched": True}),
        (
            {"routing_key": "x", "arguments": {"a": 2}},
            {"key_not_matched": True, "args_not_matched": True},
        ),
    ],
)
def test_the_answer_says_what_was_not_found(
    bound: Peer, name: str, asked: dict[str, Any], flags: dict[str, bool]
):
    queue = asked.get("queue")
    question = {**asked, "queue": "" if queue is None else name + queue}
    answer = bound.ask(s.BindingQuery(exchange=name, **question))
    assert answer == s.BindingQueryOk(**flags)


def test_a_queue_without_a_binding_is_not_matched(bound: Peer, name: str):
    answer = bound.ask(s.BindingQuery(exchange="amq.direct", queue=name))
    assert answer == s.BindingQueryOk(queue_not_matched=True)


def test_an_exchange_that_there_is_not_is_not_found(bound: Peer, name: str):
    answer = bound.ask(s.BindingQuery(exchange=f"{name}-none", queue=f"{name}-none"))
    assert answer == s.BindingQueryOk(exchange_not_found=True, queue_not_found=True)


@pytest.mark.parametrize(("key", "matched"), [("", True), ("same", True), ("x", False)])
def test_the_default_exchange_binds_every_queue_by_its_name(
    peer: Peer, name: str, key: str, matched: bool
):
    peer.queue(name)
    key = name if key == "same" else key
    answer = peer.ask(s.BindingQuery(queue=name, routing_key=key))
    assert answer == s.BindingQueryOk(key_not_matched=not matched)

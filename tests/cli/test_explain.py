"""`harebell explain` says what would happen to a message."""

from __future__ import annotations

import json

from tests.cli.conftest import Harebell, done
from tests.running import RunningBroker


def test_explain_says_where_a_message_goes_and_publishes_nothing(broker: RunningBroker) -> None:
    done(broker, "queues", "declare", "explained")
    done(broker, "bindings", "add", "amq.topic", "explained", "--routing-key", "eu.#")
    text = done(broker, "explain", "-e", "amq.topic", "-r", "eu.new", "--user", "guest")
    assert text.startswith("It reaches 1 queue.\n")
    assert "'eu.#' -> queue 'explained'" in text
    assert "yes  write for exchange 'amq.topic'" in text
    assert "It is kept until a consumer takes it." in text
    assert done(broker, "queues", "browse", "explained", "--json") == ""


def test_explain_answers_as_json_and_names_a_missing_exchange(harebell: Harebell) -> None:
    result = harebell("explain", "-r", "nowhere", "--json", "-H", "n:=1")
    assert json.loads(result.stdout)["routed"] is False
    result = harebell("explain", "-e", "missing")
    assert result.returncode == 1
    assert b"no exchange 'missing'" in result.stderr
    assert harebell("explain").returncode == 2

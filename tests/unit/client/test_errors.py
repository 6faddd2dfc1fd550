"""Exceptions: a class for every reply code, and all of them can be sent to another process."""

from __future__ import annotations

import pickle

import pytest

from harebell.base.errors import HarebellError
from harebell.base.message import Properties
from harebell.client import errors
from harebell.client.message import ReturnedMessage
from harebell.wire.v09.reply_codes import HARD, SOFT

RETURNED = ReturnedMessage(b"", "x", "k", Properties(b"\0\0"))
SAMPLES: list[errors.AMQPError] = [
    errors.ConnectionFailed("a"),
    errors.ConnectTimeout("a"),
    errors.AuthenticationFailed("a"),
    errors.ProtocolMismatch("a"),
    errors.ExtensionMissing("lease", "host:5672", "RabbitMQ", 1, None),
    errors.ConnectionLost("a"),
    errors.RecoveryFailed("a"),
    errors.ClientClosed("a"),
    errors.ConsumerCancelled("tag"),
    errors.CallTimeout("a"),
    errors.PublishNacked(5),
    errors.BulkPublishFailed(3, [(1, errors.PublishNacked(2))]),
    errors.closed_connection(530, "NOT_ALLOWED - x", 10, 40),
    errors.closed_channel(404, "NOT_FOUND - x", 60, 70),
]


@pytest.mark.parametrize("code", HARD)
def test_every_hard_code_has_a_class_of_its_own(code: int) -> None:
    error = errors.closed_connection(code, "TEXT", 1, 2)
    assert type(error) is not errors.AMQPConnectionClosed
    assert isinstance(error, errors.AMQPConnectionClosed)
    assert (error.code, error.text, error.class_id, error.method_id) == (code, "TEXT", 1, 2)
    assert str(error) == f"{code} TEXT"


@pytest.mark.parametrize("code", sorted(SOFT.keys() - {312}))  # 312 returns, it closes nothing
def test_every_soft_code_has_a_class_of_its_own(code: int) -> None:
    error = errors.closed_channel(code, "TEXT", 1, 2)
    assert type(error) is not errors.ChannelClosed
    assert isinstance(error, errors.ChannelClosed)
    assert error.code == code


def test_codes_that_nobody_defined_still_have_a_class() -> None:
    assert type(errors.closed_connection(599, "x")) is errors.AMQPConnectionClosed
    assert type(errors.closed_channel(499, "x")) is errors.ChannelClosed


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_survives_pickling(error: errors.AMQPError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert {name: str(value) for name, value in copy.__dict__.items()} == {
        name: str(value) for name, value in error.__dict__.items()
    }
    assert isinstance(copy, HarebellError)


def test_a_returned_message_says_where_it_could_not_go() -> None:
    error = errors.PublishReturned(312, "NO_ROUTE", RETURNED)
    assert "312 NO_ROUTE" in str(error)
    assert "'x'" in str(error)
    assert "'k'" in str(error)


def test_a_call_that_takes_too_long_is_also_pythons_timeout() -> None:
    assert isinstance(errors.CallTimeout("x"), TimeoutError)

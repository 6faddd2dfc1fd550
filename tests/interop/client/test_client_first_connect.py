"""The first connect with `recover`: it waits for a broker that starts, and has an end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harebell.client import aio, blocking
from harebell.client.errors import AuthenticationFailed, ConnectionFailed
from harebell.client.protocol.recovery import Recovery
from tests.patience import SECONDS
from tests.ports import free_port
from tests.running import running_broker

PATIENT = Recovery(first_seconds=0.05, most_seconds=0.1, connect_attempts=100_000)
BRIEF = Recovery(first_seconds=0.01, most_seconds=0.01, connect_attempts=3)


def in_blocking(url: str, recover: bool | Recovery, wait: float | None = None) -> str:
    with blocking.connect(url, recover=recover, wait=wait) as connection:
        return connection.channel().declare_queue("q").name


def in_asyncio(url: str, recover: bool | Recovery, wait: float | None = None) -> str:
    async def run() -> str:
        async with aio.connect(url, recover=recover, wait=wait) as connection:
            channel = await connection.channel()
            return (await channel.declare_queue("q")).name

    return asyncio.run(run())


BOTH = pytest.mark.parametrize("used", [in_blocking, in_asyncio])


@BOTH
def test_a_client_waits_for_a_broker_that_starts_later(used: Callable[..., Any]) -> None:
    port = free_port()
    with ThreadPoolExecutor(1) as pool:
        connecting = pool.submit(used, f"amqp://127.0.0.1:{port}", PATIENT)
        with running_broker("--port", str(port)):
            assert connecting.result() == "q"


@BOTH
def test_a_first_connect_gives_up_with_the_reason_and_the_number_of_attempts(
    used: Callable[..., Any],
) -> None:
    port = free_port()
    with pytest.raises(ConnectionFailed) as caught:
        used(f"amqp://127.0.0.1:{port}", BRIEF)
    assert str(caught.value).startswith(f"cannot connect to 127.0.0.1:{port}: ")
    assert str(caught.value).endswith("; gave up after 3 attempts")


@BOTH
def test_without_recovery_the_first_failure_is_the_last(used: Callable[..., Any]) -> None:
    with pytest.raises(ConnectionFailed) as caught:
        used(f"amqp://127.0.0.1:{free_port()}", False)
    assert "attempts" not in str(caught.value)


@BOTH
def test_a_refused_login_is_not_tried_again(used: Callable[..., Any]) -> None:
    with running_broker() as broker:
        with pytest.raises(AuthenticationFailed):
            used(f"amqp://guest:wrong@127.0.0.1:{broker.port}", PATIENT)
        assert broker.log.count("refused") <= 2


@BOTH
@pytest.mark.parametrize("recover", [False, PATIENT, BRIEF])
def test_a_client_waits_so_long_for_a_broker_that_starts_later(
    used: Callable[..., Any], recover: bool | Recovery
) -> None:
    port = free_port()
    with ThreadPoolExecutor(1) as pool:
        connecting = pool.submit(used, f"amqp://127.0.0.1:{port}", recover, SECONDS)
        with running_broker("--port", str(port)):
            assert connecting.result() == "q"


@BOTH
@pytest.mark.parametrize("recover", [False, PATIENT])
def test_a_wait_ends_with_the_reason_and_how_long_it_was(
    used: Callable[..., Any], recover: bool | Recovery
) -> None:
    port = free_port()
    with pytest.raises(ConnectionFailed) as caught:
        used(f"amqp://127.0.0.1:{port}", recover, 0.3)
    assert re.fullmatch(
        rf"cannot connect to 127\.0\.0\.1:{port}: .*; gave up after \d+ attempts in \d+\.\d s",
        str(caught.value),
    )


@BOTH
def test_a_refused_login_ends_a_wait_at_once(used: Callable[..., Any]) -> None:
    with running_broker() as broker, pytest.raises(AuthenticationFailed):
        used(f"amqp://guest:wrong@127.0.0.1:{broker.port}", False, 3_600)


@BOTH
@pytest.mark.parametrize("wait", [-1, float("nan")])
def test_a_wait_is_a_number_of_seconds(used: Callable[..., Any], wait: float) -> None:
    with pytest.raises(ValueError, match="wait is a number of seconds"):
        used("amqp://127.0.0.1", False, wait)

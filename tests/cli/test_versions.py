"""`--amqp`: the same verbs in every version of AMQP."""

from __future__ import annotations

import pytest

from harebell.client.blocking import Channel
from tests.cli.conftest import Harebell, error_of
from tests.interop.matrix import SPOKEN


@pytest.mark.parametrize("version", SPOKEN)
def test_a_message_published_in_a_version_is_consumed_in_it(
    harebell: Harebell, queue: str, version: str
) -> None:
    sent = harebell(
        "publish", "--amqp", version, "-r", queue, "-H", "a:=1", "--lines", stdin=b"x\ny"
    )
    assert sent.returncode == 0, sent.stderr
    safe = "committed" if version == "0-8" else "confirmed"
    assert sent.stdout.decode() == f"2 messages published to queue '{queue}' and {safe}\n"
    shown = harebell("get", "--amqp", version, "-q", queue, "--count", "2", "--requeue")
    assert (shown.returncode, shown.stdout) == (0, b"x\ny\n")
    consumed = harebell("consume", "--amqp", version, "-q", queue, "--count", "2")
    assert (consumed.returncode, consumed.stdout) == (0, b"x\ny\n")


@pytest.mark.parametrize("version", SPOKEN)
def test_a_mandatory_message_without_a_queue_is_a_failure_in_every_version(
    harebell: Harebell, channel: Channel, version: str
) -> None:
    result = harebell("publish", "--amqp", version, "-r", "nowhere.at.all", "--mandatory", "x")
    assert result.returncode == 1
    wanted = "has no basic.return" if version == "0-10t" else "nowhere.at.all"
    assert wanted in error_of(result)
    result = harebell("publish", "--amqp", version, "-r", "nowhere.at.all", "x")
    silent = version == "0-10t"
    assert result.returncode == (0 if silent else 1)
    assert ("does not say whether any queue took" if silent else "unroutable") in (
        result.stderr.decode()
    )


def test_the_address_says_the_version_too(harebell: Harebell, channel: Channel, queue: str) -> None:
    address = f"amqp+0-9://{channel.connection.url.address}"
    assert harebell("publish", "--url", address, "-r", queue, "x").returncode == 0
    wrong = harebell("publish", "--url", address.replace("0-9", "0-7"), "-r", queue, "x")
    assert wrong.returncode == 2
    assert "AMQP '0-7' is unknown: use 0-8, 0-9, 0-9-1, 0-10, 0-10t" in error_of(wrong)

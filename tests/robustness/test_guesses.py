"""Wrong passwords: many of them keep neither their address nor their user out."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress

import pika
import pytest
from pika.exceptions import ProbableAuthenticationError

from harebell.auth.password_hashes import SHA256
from harebell.client.blocking import connect
from harebell.front.limits import NEGOTIATION_FAILURES
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker, running_broker
from tests.unit.server.listening import HEADER, frame, m, talk

BATCH = 50
FAST = {"HAREBELL_PASSWORD_HASHING_MODULE": SHA256}
"""So that there may be so many guesses within a minute: each takes a hash."""


def guess(broker: RunningBroker, users: Sequence[str]) -> None:
    """Log in with wrong passwords, and read until the broker has had enough of each.

    They are sent together: for the broker to have had enough, they have to come within a minute.
    """
    table = {"capabilities": {"authentication_failure_close": True}}
    links = []
    for user in users:
        response = f"\0{user}\0wrong".encode()
        link = socket.create_connection(("127.0.0.1", broker.port), timeout=SECONDS)
        link.sendall(HEADER + frame(m.ConnectionStartOk(table, "PLAIN", response, "en_US")))
        links.append(link)
    for link in links:
        seen = b""
        # One that waits for its answer is cut with the time for its handshake, maybe by a reset.
        with suppress(ConnectionResetError):
            while more := link.recv(65_536):
                seen += more
                if b"ACCESS_REFUSED" in seen:
                    break
        link.close()


def test_guesses_at_a_password_do_not_lock_the_right_one_out() -> None:
    with running_broker(env=FAST) as broker:
        talk(broker.port).sock.close()
        for _ in range(0, NEGOTIATION_FAILURES + BATCH, BATCH):
            guess(broker, ["guest"] * BATCH)
        line = f"user 'guest' was refused {NEGOTIATION_FAILURES} times from 127.0.0.1"
        assert eventually(lambda: line in broker.log), broker.log[-2000:]
        for version in ("0-8", "0-9-1", "0-10"):
            connect(f"amqp://guest:guest@127.0.0.1:{broker.port}", version=version).close()
        talk(broker.port).open_channel()


def test_guesses_at_unknown_users_lock_nobody_out() -> None:
    with running_broker(env=FAST) as broker:
        for first in range(0, NEGOTIATION_FAILURES + BATCH, BATCH):
            guess(broker, [f"user{number}" for number in range(first, first + BATCH)])
        assert "not served for" not in broker.log
        talk(broker.port).open_channel()


def test_a_user_with_a_slow_hash_logs_in_and_a_wrong_password_does_not() -> None:
    with running_broker(env={"HAREBELL_DEFAULT_PASS": "a long secret"}) as broker:
        wrong = pika.ConnectionParameters(
            "127.0.0.1", broker.port, credentials=pika.PlainCredentials("guest", "wrong")
        )
        with pytest.raises(ProbableAuthenticationError):
            pika.BlockingConnection(wrong)
        for version in ("0-8", "0-9", "0-9-1", "0-10"):
            url = f"amqp://guest:a%20long%20secret@127.0.0.1:{broker.port}"
            connect(url, version=version).close()
        assert "a long secret" not in broker.log

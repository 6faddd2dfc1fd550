"""Answers that clients do not read: their user has no more of them, and others do not notice."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from contextlib import ExitStack

import pytest

from harebell.management.http.unread_answers import UnreadAnswers
from harebell.management.limits import HTTP_ANSWERS, HTTP_UNREAD_BYTES
from tests.patience import SECONDS, eventually
from tests.unit.management.http.asking import Api, running_api


async def _turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_few_answers_are_made_for_one_user_at_a_time() -> None:
    answers = UnreadAnswers(int)
    begun: list[int] = []

    async def ask(number: int) -> None:
        await answers.begin("ann")
        begun.append(number)

    asking = [asyncio.ensure_future(ask(each)) for each in range(3 * HTTP_ANSWERS)]
    await _turns()
    assert len(begun) == HTTP_ANSWERS
    await asyncio.wait_for(answers.begin("bob"), SECONDS)
    asking[HTTP_ANSWERS].cancel()
    for _ in range(2 * HTTP_ANSWERS - 1):
        answers.made("ann", 0)
    await _turns()
    assert begun == [each for each in range(3 * HTTP_ANSWERS) if each != HTTP_ANSWERS]


@pytest.mark.asyncio
async def test_answers_wait_until_others_of_their_user_were_read() -> None:
    answers = UnreadAnswers(int)
    await answers.begin("ann")
    answers.made("ann", HTTP_UNREAD_BYTES)
    asking = [asyncio.ensure_future(answers.begin("ann")) for _ in range(3)]
    await _turns()
    assert not any(each.done() for each in asking)
    await asyncio.wait_for(answers.begin("bob"), SECONDS)
    answers.read("ann", 1)
    await _turns()
    assert all(each.done() for each in asking)


def link_of(api: Api, login: str, method: str, path: str, body: bytes = b"") -> socket.socket:
    """A connection with a request."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    link.settimeout(SECONDS)
    link.connect(("127.0.0.1", api.port))
    size = f"content-length: {len(body)}\r\n" if body else ""
    link.sendall(f"{method} {path} HTTP/1.1\r\nhost: x\r\n{login}\r\n{size}\r\n".encode() + body)
    return link


def test_a_user_who_reads_no_answers_waits_and_others_do_not() -> None:
    count, size = 10, 14_000_000
    with running_api() as api, ExitStack() as stack:
        api.user("greedy", "management", vhost="/")
        login = f"authorization: Basic {b64encode(b'greedy:p').decode()}"
        path = "/api/queues/%2F/large"
        api.done("PUT", path, {})
        message = {"properties": {}, "routing_key": "large", "payload_encoding": "base64"}
        message["payload"] = b64encode(bytes(size)).decode()
        for _ in range(count):
            api.done("POST", "/api/exchanges/%2F/amq.default/publish", message)
        body = b'{"count":1,"ackmode":"ack_requeue_true","encoding":"base64"}'
        full = -(-HTTP_UNREAD_BYTES // (size * 4 // 3))
        unread = []
        for held in range(1, full + 1):
            unread.append(stack.enter_context(link_of(api, login, "POST", f"{path}/get", body)))
            assert unread[-1].recv(1, socket.MSG_PEEK)
            assert api.get(path)["messages_unacknowledged"] == held
        unread.append(stack.enter_context(link_of(api, login, "POST", f"{path}/get", body)))
        waiting = stack.enter_context(link_of(api, login, "GET", "/api/whoami"))
        assert api.get("/api/whoami")["name"] == "guest"
        assert api.get(path)["messages_unacknowledged"] == full
        waiting.settimeout(0.1)
        with pytest.raises(TimeoutError):
            waiting.recv(1)
        waiting.settimeout(SECONDS)
        for link in unread:
            link.close()
        assert waiting.recv(9) == b"HTTP/1.1 "
        assert eventually(lambda: api.get(path)["messages_ready"] == count)

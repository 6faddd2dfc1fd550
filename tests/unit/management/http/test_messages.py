"""Messages are browsed and moved over HTTP, with permissions, as lines of JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from harebell.management.http.sending import send_rows
from tests.patience import SECONDS, eventually
from tests.unit.management.control.test_dispatcher import World
from tests.unit.management.control.test_row_reader import Counting
from tests.unit.management.http.asking import Api, segment

NAME = "a/b%\t\u202e"


def filled(api: Api, name: str, count: int = 5) -> str:
    """Declare a queue, publish numbers to it; its path."""
    path = f"/api/queues/%2F/{segment(name)}"
    api.done("PUT", path, {"durable": True})
    for number in range(count):
        body = {
            "properties": {"delivery_mode": 2},
            "routing_key": name,
            "payload": str(number),
            "payload_encoding": "string",
        }
        api.ask("POST", "/api/exchanges/%2F/amq.default/publish", body)
    return path


def lines(answer: Any) -> list[Any]:
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.body.splitlines()]


def test_browsing_answers_with_a_line_for_each_message(api: Api) -> None:
    path = filled(api, NAME)
    rows = lines(api.ask("GET", f"{path}/browse?where=body%20%3E%202&limit=1"))
    assert [(row["payload"], row["routing_key"], row["offset"]) for row in rows] == [("3", NAME, 3)]
    assert [row["payload"] for row in lines(api.ask("GET", f"{path}/browse?from=-2"))] == ["3", "4"]


def test_a_wrong_request_is_an_error_in_json(api: Api) -> None:
    path = filled(api, "errors", 1)
    answer = api.ask("GET", f"{path}/browse?where=sice%20%3E%201")
    assert answer.status == 400
    assert "did you mean 'size'?" in answer.json["reason"]
    assert api.ask("GET", "/api/queues/%2F/missing/browse").status == 404
    assert api.ask("GET", f"{path}/browse", user=None).status == 401
    assert api.ask("DELETE", "/api/jobs/4711").status == 404


def test_a_move_is_a_job_that_can_be_followed(api: Api) -> None:
    path = filled(api, "from")
    api.done("PUT", "/api/queues/%2F/to", {"durable": True})
    job = api.done("POST", f"{path}/move", {"where": "body < 3", "to_queue": "to"}).json
    number = job["id"]
    assert eventually(lambda: api.get(f"/api/jobs/{number}")["ended"])
    found = next(row for row in api.get("/api/jobs") if row["id"] == number)
    assert (found["state"], found["done"], found["user"]) == ("done", 3, "guest")
    assert api.get(f"/api/jobs/{number}")["selected"] == 3
    assert [row["payload"] for row in lines(api.ask("GET", f"{path}/browse"))] == ["3", "4"]


def test_a_user_needs_permissions_for_the_queue_and_the_target(api: Api) -> None:
    path = filled(api, "guarded", 1)
    login = api.user("limited", "management", vhost="/", pattern="^mine")
    assert api.ask("GET", f"{path}/browse", user=login).status in (401, 403)
    body = {"where": "true", "to_queue": "mine"}
    for verb in ("move", "copy", "remove", "retry"):
        answer = api.ask(
            "POST",
            f"{path}/{verb}",
            body if verb in ("move", "copy") else {"where": "true"},
            user=login,
        )
        assert answer.status in (401, 403), (verb, answer)
    stranger = api.user("stranger", "management")
    assert api.ask("GET", f"{path}/browse", user=stranger).status in (401, 403)
    assert len(lines(api.ask("GET", f"{path}/browse"))) == 1


@pytest.mark.asyncio
async def test_a_client_that_goes_ends_a_search_in_the_broker() -> None:
    world, counting = World(), Counting(1, pause=10**9)
    sent: list[Any] = []
    left = asyncio.Event()

    async def closed() -> None:
        await left.wait()

    async def send(message: Any) -> None:
        sent.append(message)

    reader = world.dispatcher.reader_of(counting.stream)
    sending = asyncio.ensure_future(send_rows(reader, [], closed(), send))
    for _ in range(10):
        await asyncio.sleep(0)
        world.registry.turns.next_turn()
    assert not sending.done()
    left.set()
    async with asyncio.timeout(SECONDS):
        await sending
    assert counting.closed == 1
    assert not any(message.get("body") for message in sent)

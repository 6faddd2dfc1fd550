"""What would happen to a message is said over HTTP, and nothing is published."""

from __future__ import annotations

from typing import Any

from tests.unit.management.http.asking import Api, segment


def explained(
    api: Api, exchange: str, key: str = "", user: str = "guest:guest", **more: Any
) -> Any:
    path = f"/api/exchanges/%2F/{segment(exchange)}/explain"
    answer = api.ask("POST", path, {"routing_key": key, **more}, user=user)
    assert answer.status == 200, answer
    return answer.json


def declared(api: Api, queue: str, **arguments: Any) -> None:
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    api.done("PUT", f"/api/queues/%2F/{queue}", {"durable": True, "arguments": given})


def exchange(api: Api, name: str, kind: str, **arguments: Any) -> None:
    given = {each.replace("_", "-"): value for each, value in arguments.items()}
    api.done("PUT", f"/api/exchanges/%2F/{name}", {"type": kind, "arguments": given})


def bound(api: Api, source: str, kind: str, end: str, key: str = "", **arguments: Any) -> None:
    given = {each.replace("_", "-"): value for each, value in arguments.items()}
    path = f"/api/bindings/%2F/e/{source}/{kind}/{end}"
    api.done("POST", path, {"routing_key": key, "arguments": given})


def published(api: Api, queue: str, times: int = 1, **properties: Any) -> None:
    body = {
        "routing_key": queue,
        "payload": "x" * 10,
        "payload_encoding": "string",
        "properties": properties,
    }
    for _ in range(times):
        api.done("POST", "/api/exchanges/%2F/amq.default/publish", body)


def test_each_binding_that_matches_is_shown_and_no_other(api: Api) -> None:
    for queue in ("eu", "all", "us"):
        declared(api, queue)
    exchange(api, "orders", "topic")
    bound(api, "orders", "q", "eu", "eu.#")
    bound(api, "orders", "q", "all", "#")
    bound(api, "orders", "q", "all", "eu.new")
    bound(api, "orders", "q", "us", "us.#")
    found = explained(api, "orders", "eu.new")
    (step,) = found["steps"]
    shown = {(each["routing_key"], each["destination"]) for each in step["bindings"]}
    assert shown == {("eu.#", "eu"), ("#", "all"), ("eu.new", "all")}
    assert {queue["name"] for queue in found["queues"]} == {"eu", "all"}
    assert found["verdict"] == "It reaches 2 queues."
    assert found["routed"] is found["allowed"] is True
    assert api.get("/api/queues/%2F/eu")["messages"] == 0


def test_explain_follows_bindings_between_exchanges_and_the_alternate_exchange(api: Api) -> None:
    declared(api, "kept")
    declared(api, "lost")
    exchange(api, "spare", "fanout")
    exchange(api, "inner", "direct")
    exchange(api, "outer", "headers", alternate_exchange="spare")
    bound(api, "outer", "e", "inner", tenant="acme")
    bound(api, "inner", "q", "kept", "k")
    bound(api, "spare", "q", "lost")
    found = explained(api, "outer", "k", properties={"headers": {"tenant": "acme"}})
    assert [(step["exchange"], step["via"]) for step in found["steps"]] == [
        ("outer", "publish"),
        ("inner", "binding"),
    ]
    assert [queue["name"] for queue in found["queues"]] == ["kept"]
    found = explained(api, "outer", "k", properties={"headers": {"tenant": "other"}})
    assert [(step["exchange"], step["via"]) for step in found["steps"]] == [
        ("outer", "publish"),
        ("spare", "alternate-exchange"),
    ]
    assert "The alternate exchange 'spare' gets it." in found["steps"][0]["explanation"]


def test_further_keys_are_followed(api: Api) -> None:
    declared(api, "first")
    declared(api, "copy")
    found = explained(api, "amq.default", "first", properties={"headers": {"CC": ["copy"]}})
    assert [queue["name"] for queue in found["queues"]] == ["first", "copy"]


def test_a_message_that_no_binding_matches_reaches_no_queue(api: Api) -> None:
    found = explained(api, "amq.direct", "nowhere")
    assert found["routed"] is False
    assert "returned to a publisher who sets the flag mandatory" in found["verdict"]
    assert "'missing'" in api.ask("POST", "/api/exchanges/%2F/missing/explain", {}).json["reason"]


def test_a_full_queue_says_whether_it_refuses_drops_or_dead_letters(api: Api) -> None:
    declared(api, "letters")
    declared(api, "refusing", x_max_length=1, x_overflow="reject-publish")
    dead = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "letters"}
    declared(api, "dropping", x_max_length_bytes=15, x_message_ttl=5000, **dead)
    for queue in ("refusing", "dropping"):
        (row,) = explained(api, "amq.default", queue, payload_bytes=10)["queues"]
        assert row["outcome"] == "kept"
        published(api, queue)
    found = explained(api, "amq.default", "refusing")
    assert found["queues"][0]["outcome"] == "refused"
    assert found["verdict"].endswith("so the confirm is a nack.")
    (row,) = explained(api, "amq.default", "dropping", payload_bytes=10)["queues"]
    assert row["outcome"] == "drops-oldest"
    assert row["dead_letters"] == {
        "exchange": "",
        "routing_key": "letters",
        "exists": True,
        "queues": ["letters"],
    }
    assert row["expires_after_ms"] == 5000
    (row,) = explained(api, "amq.default", "dropping", payload_bytes=4)["queues"]
    assert row["outcome"] == "kept"


def test_exchanges_that_remember_or_draw_keep_their_state_when_explained(api: Api) -> None:
    declared(api, "taker")
    declared(api, "other")
    exchange(api, "once", "x-message-deduplication", x_cache_size=10)
    exchange(api, "any", "x-random")
    exchange(api, "later", "x-delayed-message", x_delayed_type="fanout")
    for source in ("once", "any", "later"):
        bound(api, source, "q", "taker")
    bound(api, "any", "q", "other")
    seen = {"headers": {"x-deduplication-header": "7"}}
    for _ in range(2):
        assert explained(api, "once", properties=seen)["routed"] is True
    found = explained(api, "any")
    assert found["queues_total"] == 2
    assert found["steps"][0]["one_of"] is True
    found = explained(api, "later", properties={"headers": {"x-delay": 9000}})
    assert found["steps"][0]["explanation"].startswith("It is delayed for 9000 ms first.")
    assert api.get("/api/exchanges/%2F/later")["messages_delayed"] == 0


def test_a_duplicate_in_a_queue_is_seen_without_being_noted(api: Api) -> None:
    declared(api, "unique", x_message_deduplication=True)
    seen = {"headers": {"x-deduplication-header": "7"}}
    for _ in range(2):
        (row,) = explained(api, "amq.default", "unique", properties=seen)["queues"]
        assert row["outcome"] == "kept"
    published(api, "unique", **seen)
    (row,) = explained(api, "amq.default", "unique", properties=seen)["queues"]
    assert row["outcome"] == "duplicate"


def test_the_permissions_of_the_publisher_are_part_of_the_answer(api: Api) -> None:
    login = api.user("narrow", "management", vhost="/", pattern="^mine")
    found = explained(api, "amq.topic", "a.b", user=login)
    assert found["allowed"] is False
    assert "write access to exchange 'amq.topic' in vhost '/' refused" in found["verdict"]
    exchange(api, "mine.topics", "topic")
    rule = {"exchange": "mine.topics", "write": "^eu", "read": ".*"}
    api.done("PUT", "/api/topic-permissions/%2F/narrow", rule)
    assert explained(api, "mine.topics", "eu.x", user=login)["allowed"] is True
    refused = explained(api, "mine.topics", "us.x", user=login)
    assert "topic 'us.x'" in refused["verdict"]
    of_other = explained(api, "mine.topics", "us.x", user="guest:guest")
    assert of_other["allowed"] is True


def test_only_users_who_see_all_may_ask_for_another_user(api: Api) -> None:
    login = api.user("curious", "management", vhost="/")
    path = "/api/exchanges/%2F/amq.topic/explain"
    answer = api.ask("POST", path, {"user": "guest"}, user=login)
    assert answer.status == 401
    assert "leave the user out" in answer.json["reason"]
    api.user("other", "management")
    found = api.ask("POST", path, {"user": "other"}).json
    assert found["verdict"] == ("It is refused: user 'other' has no permissions in vhost '/'.")


def test_an_internal_exchange_and_a_body_that_is_too_large_are_refused(api: Api) -> None:
    body = {"type": "fanout", "internal": True}
    api.done("PUT", "/api/exchanges/%2F/hidden", body)
    assert "is internal" in explained(api, "hidden")["verdict"]
    assert "message_max_bytes" in explained(api, "amq.fanout", payload_bytes=2**40)["verdict"]
    answer = api.ask("POST", "/api/exchanges/%2F/amq.fanout/explain", {"payload_bytes": -1})
    assert answer.status == 400

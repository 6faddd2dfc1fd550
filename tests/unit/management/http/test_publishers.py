"""Named publishers over HTTP: seen by their users, handed over and forgotten by administrators."""

from __future__ import annotations

import pytest

from harebell.client import blocking
from harebell.client.errors import AccessRefused
from tests.ports import free_port
from tests.running import running_broker
from tests.unit.management.http.asking import Api


def test_publishers_are_seen_handed_over_and_forgotten_by_those_who_may() -> None:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        api = Api(port)
        ann = api.user("ann", "policymaker", vhost="/", pattern="")
        bob = api.user("bob", "policymaker", vhost="/")
        api.done(
            "PUT",
            "/api/permissions/%2F/ann",
            {"configure": "", "write": "^q$", "read": ""},
        )
        url = f"amqp://{ann}@127.0.0.1:{broker.port}/%2F"
        path = "/api/publishers/%2F/spark%2F1"
        with blocking.connect(broker.url) as own, blocking.connect(url) as anns:
            channel = own.channel()
            channel.declare_queue("q", durable=True)
            channel.stage_open("spark/1", "run")
            first = anns.channel()
            first.publisher_declare("sensor")
            with pytest.raises(AccessRefused, match="hand-over spark/1 --to ann"):
                anns.channel().stage_open("spark/1", "run")
            rows = api.get("/api/publishers")
            assert [(row["user"], row["name"], row["kind"], row["next"]) for row in rows] == [
                ("ann", "sensor", "numbers", 0),
                ("guest", "spark/1", "batches", 0),
            ]
            assert api.get("/api/publishers/%2F", user=ann) == rows[:1]
            for method, where, body in (
                ("POST", f"{path}/hand-over", {"to": "ann"}),
                ("DELETE", path, None),
            ):
                assert api.ask(method, where, body, user=ann).status == 401
                assert api.ask(method, where, body, user=bob).status == 401
            told = api.ask("POST", "/api/publishers/%2F/sensor/hand-over", {"to": "guest"})
            assert told.status == 400
            assert "is in use on 1 channels" in told.json["reason"]
            for body, status, reason in (
                ({}, 400, "to"),
                ({"to": ""}, 400, "give --to USER"),
                ({"to": "nobody"}, 404, "no user 'nobody'"),
                ({"to": "guest"}, 400, "user 'guest' has publisher"),
                ({"to": "ann", "user": "bob"}, 404, "no publisher 'spark/1' of user 'bob'"),
            ):
                answer = api.ask("POST", f"{path}/hand-over", body)
                assert (answer.status, reason in answer.json["reason"]) == (status, True), answer
            api.done(
                "PUT", "/api/permissions/%2F/bob", dict.fromkeys(("configure", "write", "read"), "")
            )
            answer = api.ask("POST", f"{path}/hand-over", {"to": "bob"})
            assert (answer.status, "may write to nothing" in answer.json["reason"]) == (400, True)
            answer = api.ask("POST", f"{path}/hand-over", {"to": "ann"})
            assert answer.status == 200
            assert answer.json == {"vhost": "/", "user": "guest", "to": "ann", "publishers": 1}
            assert anns.channel().stage_open("spark/1", "later") == 0
            with pytest.raises(AccessRefused, match="another user's"):
                own.channel().stage_open("spark/1", "run")
        assert api.ask("DELETE", path).status == 204
        assert api.ask("DELETE", path).status == 404

"""Leases and the oldest message are seen over HTTP, by those who may see the vhost."""

from __future__ import annotations

from harebell.client import blocking
from tests.ports import free_port
from tests.running import running_broker
from tests.unit.management.http.asking import Api


def test_a_claim_is_released_with_those_after_it() -> None:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        api = Api(port)
        path = "/api/leases/%2F/leased/group"
        with blocking.connect(broker.address() + "/%2F") as connection:
            channel = connection.channel()
            channel.declare_queue("leased", durable=True)
            channel.publish_many([b"%d" % n for n in range(6)], routing_key="leased")
            epoch = channel.lease_open("leased", "group", timeout=600).epoch
            for _ in range(3):
                channel.lease_claim("leased", "group", epoch, 2)
        numbers = [each["number"] for each in api.get(path)["open"]]
        assert len(numbers) == 3
        answer = api.ask("DELETE", f"{path}?claim=4711")
        assert answer.status == 404
        assert "has no open claim 4711" in answer.json["reason"]
        assert api.ask("DELETE", f"{path}?claim={numbers[0]}&forget=true").status == 400
        api.done("DELETE", f"{path}?claim={numbers[1]}")
        assert [each["number"] for each in api.get(path)["open"]] == numbers[:1]
        assert api.get("/api/queues/%2F/leased")["messages_ready"] == 4
        assert api.get(path)["lost"] == numbers[2]


def test_leases_are_listed_by_vhost_and_queue_and_released() -> None:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        api = Api(port)
        stranger = api.user("stranger", "management")
        clerk = api.user("clerk", "management", vhost="/")
        assert api.get("/api/oldest-message") == {
            "oldest_seconds": None,
            "vhost": None,
            "queue": None,
        }
        with blocking.connect(broker.address() + "/%2F") as connection:
            channel = connection.channel()
            for queue in ("leased", "other"):
                channel.declare_queue(queue, durable=True)
                channel.publish_many([b"1", b"2"], routing_key=queue, delivery_mode=2)
                epoch = channel.lease_open(queue, "a/b", timeout=600).epoch
                channel.lease_claim(queue, "a/b", epoch, 1)
        assert [row["queue"] for row in api.get("/api/leases", user=clerk)] == ["leased", "other"]
        (row,) = api.get("/api/leases/%2F?queue=leased", user=clerk)
        assert (row["group"], row["messages"], row["timeout"]) == ("a/b", 1, 600.0)
        assert api.get("/api/leases/%2F?queue=missing") == []
        assert api.get("/api/leases", user=stranger) == []
        assert api.ask("GET", "/api/leases/%2F", user=stranger).status == 401
        for path in ("leased/none", "missing/a%2Fb"):
            assert api.ask("GET", f"/api/leases/%2F/{path}").status == 404
            assert api.ask("DELETE", f"/api/leases/%2F/{path}").status == 404
        assert api.ask("DELETE", "/api/leases/%2F/leased/a%2Fb", user=clerk).status == 401
        api.done("DELETE", "/api/leases/%2F/leased/a%2Fb")
        assert api.get("/api/queues/%2F/leased")["messages_ready"] == 2
        found = api.get("/api/oldest-message", user=clerk)
        assert found["queue"] in ("leased", "other")
        assert 0 <= found["oldest_seconds"] < 600
        assert api.get("/api/oldest-message", user=stranger)["queue"] is None

"""What queries report over AMQP is seen over HTTP, and deleted there by those who may."""

from __future__ import annotations

import pytest

from harebell.client import blocking
from harebell.client.errors import PreconditionFailed
from tests.ports import free_port
from tests.running import running_broker
from tests.unit.management.http.asking import Api


def test_reports_are_seen_and_a_user_deletes_only_own_ones() -> None:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        api = Api(port)
        ann = api.user("ann", "management", vhost="/", pattern="^ann")
        bob = api.user("bob", "monitoring")
        url = f"amqp://{ann}@127.0.0.1:{broker.port}/%2F"
        with blocking.connect(url) as connection:
            channel = connection.channel()
            channel.report_query("a", {"batch": 1, "lag_messages": 7, "sources": ["orders"]})
            channel.report_query("b/<i>", {"batch": 2, "rows_per_second": 0.5, "error": "no disk"})
            with pytest.raises(PreconditionFailed, match="'batch' in the report of query 'a'"):
                channel.report_query("a", {"batch": "x"})
        rows = api.get("/api/queries", user=bob)
        assert [(row["user"], row["name"], row["batch"]) for row in rows] == [
            ("ann", "a", 1),
            ("ann", "b/<i>", 2),
        ]
        assert rows == api.get("/api/queries/%2F", user=ann)
        assert (rows[0]["lag_messages"], rows[0]["sources"]) == (7, ["orders"])
        assert (rows[1]["rows_per_second"], rows[1]["error"]) == (0.5, "no disk")
        api.done(
            "PUT", "/api/permissions/%2F/bob", dict.fromkeys(("configure", "write", "read"), "")
        )
        answer = api.ask("DELETE", "/api/queries/%2F/ann/a", user=bob)
        assert answer.status == 401
        assert "that user or an administrator may delete it" in answer.json["reason"]
        api.done("DELETE", "/api/queries/%2F/ann/a", user=ann)
        api.done("DELETE", "/api/queries/%2F/ann/b%2F%3Ci%3E")
        assert api.get("/api/queries") == []
        assert api.ask("DELETE", "/api/queries/%2F/ann/a", user=ann).status == 404

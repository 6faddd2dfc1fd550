"""The audit trail with several workers: one line for an act, wherever it was asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harebell.client.blocking import connect
from harebell.cluster.workers.division import join
from tests.cluster.workers import Workers, workers
from tests.running import asked, running_broker


def _acts(found: Workers, store: int, **wanted: Any) -> list[tuple[str, str]]:
    rows = found.ask("audit.list", store, **wanted)
    return [(row["act"], row["object"]) for row in rows]


def test_an_act_has_one_line_with_its_states_whichever_worker_is_asked(tmp_path: Path) -> None:
    home = tmp_path / "data"
    with workers(data_dir=home) as found:
        # Each is about another store than that of the worker that is asked.
        found.ask("queues.declare", 1, name="of-one", vhost="far")
        found.ask("queues.declare", 2, name="of-two", vhost="/")
        found.ask("users.add", 2, name="ann", password="p")
        found.ask("users.tags", 2, name="ann", tags=["monitoring"])
        found.ask("connections.close-all", 2, vhost="far")
        with connect(found.amqp("far")) as connection:
            connection.channel().declare_queue("of-amqp", durable=True)
        wanted = [
            ("queues.declare", "of-one"),
            ("queues.declare", "of-two"),
            ("users.add", "ann"),
            ("users.tags", "ann"),
            ("connections.close-all", ""),
            ("queues.declare", "of-amqp"),
        ]
        for store in (1, 2):
            assert _acts(found, store)[-6:] == wanted
            assert _acts(found, store, limit=2) == wanted[-2:]
        (line,) = found.ask("audit.list", 1, act="users.tags")
        assert (line["before"]["tags"], line["after"]["tags"]) == ([], ["monitoring"])
        (line,) = found.ask("audit.list", 2, object="of-one")
        assert (line["before"], line["after"]["type"]) == (None, "classic")
        oldest = found.ask("audit.list", 1, limit=2)[0]["number"]
        assert _acts(found, 2, limit=2, before=oldest) == wanted[-4:-2]
        found.kill(2)
        assert _acts(found, 1, object="ann") == wanted[2:4]
    join(home)
    with running_broker("--data-dir", str(home)) as broker:
        rows = json.loads(asked(broker, "audit", "list", "--json").stdout)
    assert [(row["act"], row["object"]) for row in rows][-6:] == wanted

"""Questions in SQL over HTTP: each in a process of its own, with the rights of who asks."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from harebell.client.blocking import connect
from tests.browser.traffic import Site, serving
from tests.patience import eventually

MESSAGES = 2_000
LOGIN = b64encode(b"ann:ann").decode()
ENDLESS = "SELECT count(*) FROM " + ", ".join(f"queue('jobs') AS {name}" for name in "abcd")
PROGRAM = "harebell.pipeline.sql.embedded.answering"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A broker with messages, users who may read one of two queues, and some who may not."""
    with serving() as made:
        with connect(f"{made.broker.address()}/%2F") as connection:
            channel = connection.channel()
            for queue in ("jobs", "secret"):
                channel.declare_queue(queue, durable=True)
            bodies = [b'{"id": %d}' % number for number in range(MESSAGES)]
            channel.publish_many(bodies, routing_key="jobs")
            channel.publish(b"hidden", routing_key="secret")
        for name, read in (("ann", "jobs"), ("bob", "jobs")):
            user = {"password": name, "tags": "management"}
            assert made.api.ask("PUT", f"/api/users/{name}", user).status in (201, 204)
            rights = {"configure": "", "write": "", "read": read}
            made.api.ask("PUT", f"/api/permissions/%2F/{name}", rights)
        made.api.ask("PUT", "/api/users/eve", {"password": "eve", "tags": "management"})
        made.api.ask("PUT", "/api/users/zoe", {"password": "zoe", "tags": ""})
        yield made


def ask(site: Site, statement: str, user: str = "guest", number: str = "1", **more: Any) -> Any:
    return site.api.ask(
        "POST",
        f"/api/sql/%2F/{number}",
        {"statement": statement, **more},
        user=f"{user}:{user}",
    )


def processes() -> list[int]:
    """Those that answer questions now."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            line = (each / "cmdline").read_bytes() if each.name.isdigit() else b""
        except OSError:
            continue
        if PROGRAM.encode() in line:
            found.append(int(each.name))
    return found


def test_a_question_is_answered_with_its_rows(site: Site) -> None:
    text = "SELECT count(*) AS n, min(CAST(value AS STRING)) AS first FROM queue('jobs')"
    answer = ask(site, text).json
    assert answer.pop("seconds") > 0
    assert answer == {
        "columns": ["n", "first"],
        "rows": [[MESSAGES, '{"id": 0}']],
        "more": False,
        "read": MESSAGES,
    }


def test_a_user_is_told_what_he_may_read_and_nothing_else(site: Site) -> None:
    assert ask(site, "SELECT count(*) FROM queue('jobs')", "ann").json["rows"] == [[MESSAGES]]
    refused = ask(site, "SELECT * FROM queue('secret')", "ann").json
    assert "rows" not in refused
    assert "read access to queue 'secret' in vhost '/' refused for user 'ann'" in refused["problem"]
    assert ask(site, "SELECT 1", "eve").status == 401
    assert ask(site, "SELECT 1", "zoe").status == 401
    assert ask(site, "SELECT 1", "nobody").status == 401


def test_a_question_has_the_connection_of_its_user(site: Site) -> None:
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(ask, site, ENDLESS, "ann", "mine")

        def users() -> list[str]:
            return [each["user"] for each in site.api.get("/api/connections")]

        assert eventually(lambda: users() == ["ann"])
        site.api.ask("DELETE", "/api/sql/mine", user="ann:ann")
        assert "cancelled" in asked.result().json["problem"]
    assert eventually(lambda: users() == [])


def test_a_user_asks_one_question_at_a_time_and_others_are_answered(site: Site) -> None:
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(ask, site, ENDLESS, "ann", "long")
        assert eventually(lambda: len(processes()) == 1)
        second = ask(site, "SELECT 1 AS one", "ann", "other")
        assert second.status == 400
        assert "still being answered" in second.json["reason"]
        assert ask(site, "SELECT 1 AS one", "bob").json["rows"] == [[1]]
        # Nobody ends the question of another user.
        assert site.api.ask("DELETE", "/api/sql/long", user="bob:bob").status == 404
        assert site.api.ask("DELETE", "/api/sql/long", user="ann:ann").status == 204
        assert asked.result().json == {"problem": "the question was cancelled"}
    assert eventually(lambda: processes() == [])


@pytest.mark.parametrize("by_name", [False, True])
def test_a_question_ends_with_its_client(site: Site, by_name: bool) -> None:
    fields = {"statement": ENDLESS} | ({"id": "left", "vhost": "/"} if by_name else {})
    path = "/api/admin/sql.ask" if by_name else "/api/sql/%2F/left"
    link = HTTPConnection("127.0.0.1", site.api.port)
    link.request("POST", path, json.dumps(fields), {"authorization": f"Basic {LOGIN}"})
    assert eventually(lambda: len(processes()) == 1)
    link.close()
    assert eventually(lambda: processes() == [])
    said = f"has closed its connection during POST '{path.replace('%2F', '/')}'"
    assert eventually(lambda: said in str(site.api.get("/api/logs")))
    assert ask(site, "SELECT 1 AS one", "ann").json["rows"] == [[1]]


def test_a_question_that_would_not_end_is_ended_and_its_process_with_it(site: Site) -> None:
    answer = ask(site, ENDLESS).json
    assert answer == {"problem": "the question took more than 15 seconds, and was ended"}
    assert eventually(lambda: processes() == [])


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT nope FROM queue('jobs')", "line 1, column 8: there is no column 'nope'"),
        ("SELECT * FROM queue('gone')", "there is no queue 'gone'"),
        ("SELECT explode(headers) FROM queue('jobs')", "`harebell sql` asks Spark for it"),
        ("DELETE FROM queue('jobs') WHERE true", "a page asks with SELECT"),
        ("SET x = 1", "a page asks with SELECT"),
        ("SELECT * FROM csv.`/etc/passwd`", "does not know the table"),
        ("SELECT * FROM lake('/etc')", "does not know lake()"),
        ("ATTACH '/tmp/x'", "there is no verb ATTACH"),
        ("SELECT " + "(" * 3_000 + "1" + ")" * 3_000, "nested too deeply"),
        (f"SELECT * FROM queue('{'q' * 256}')", "queue: it has 256 octets"),
        (
            ENDLESS.replace("count(*)", "a.value") + " ORDER BY a.value, b.value, c.value",
            "more than 256 MiB of memory",
        ),
    ],
)
def test_what_is_wrong_with_a_question_is_one_sentence(
    site: Site, statement: str, said: str
) -> None:
    answer = ask(site, statement).json
    assert said in answer["problem"]
    assert "\n" not in answer["problem"]


def test_texts_that_double_until_the_memory_is_full_end_the_process_and_not_the_broker(
    site: Site,
) -> None:
    text = "SELECT CAST(value AS STRING) AS x FROM queue('jobs')"
    for _ in range(34):
        text = f"SELECT x || x AS x FROM ({text}) AS t"
    assert "memory" in ask(site, f"SELECT length(x) FROM ({text}) AS t").json["problem"]
    assert ask(site, "SELECT 1").json["rows"] == [[1]]


def test_answers_are_cut_at_their_limits(site: Site) -> None:
    answer = ask(site, "SELECT offset FROM queue('jobs')", rows=3).json
    assert (len(answer["rows"]), answer["more"]) == (3, True)
    text = "SELECT 9007199254740993 AS n, 1e0 / 3 AS d, CAST(value AS STRING) AS t, NULL AS x"
    assert ask(site, f"{text} FROM queue('secret')").json["rows"] == [
        ["9007199254740993", 1 / 3, "hidden", None]
    ]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/sql/%2F/1", {"statement": "x" * 20_001}, "statement has 20001 bytes"),
        ("/api/sql/%2F/1", {"statement": "SELECT 1", "rows": 0}, "rows is 0: it is 1 to 1000"),
        ("/api/sql/%2F/1", {"statement": "SELECT 1", "rows": 10**9}, "rows is 1000000000"),
        (f"/api/sql/%2F/{'i' * 65}", {"statement": "SELECT 1"}, "id has 65 characters"),
        ("/api/sql/%2F/1", {}, "statement"),
    ],
)
def test_a_request_beyond_the_limits_is_refused_by_its_field(
    site: Site, path: str, body: dict[str, Any], said: str
) -> None:
    answer = site.api.ask("POST", path, body)
    assert answer.status == 400
    assert said in answer.json["reason"]

"""Users, permissions, vhosts and policies of a running broker: by command, at once, for good."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harebell.base.errors import HarebellError
from harebell.client.blocking import connect
from tests.cli.conftest import done, error_of, listed, run, run_harebell
from tests.running import RunningBroker, running_broker


def url(broker: RunningBroker, user: str, vhost: str = "%2f") -> str:
    return f"amqp://{user}@127.0.0.1:{broker.port}/{vhost}"


def test_a_new_user_logs_in_and_may_do_what_the_patterns_say_from_the_next_method_on(
    own: RunningBroker,
) -> None:
    done(own, "users", "add", "ann", "--tags", "monitoring", stdin=b"secret\n")
    with pytest.raises(HarebellError, match="access to vhost '/' refused for user 'ann'"):
        connect(url(own, "ann:secret"))
    done(own, "permissions", "set", "ann", "^a", ".*", ".*")
    with connect(url(own, "ann:secret")) as connection:
        connection.channel().declare_queue("a1")
        with pytest.raises(HarebellError, match="configure access to queue 'b1'"):
            connection.channel().declare_queue("b1")
        done(own, "permissions", "set", "ann", "^b", ".*", ".*")
        connection.channel().declare_queue("b1")
        done(own, "permissions", "clear", "ann")
        with pytest.raises(HarebellError, match="refused for user 'ann'"):
            connection.channel().declare_queue("b2")


def test_another_password_is_asked_for_at_the_next_login(own: RunningBroker) -> None:
    done(own, "users", "password", "guest", "other")
    connect(url(own, "guest:other")).close()
    with pytest.raises(HarebellError):
        connect(url(own, "guest:guest"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_everything_is_there_after_a_restart(tmp_path: Path, number: signal.Signals) -> None:
    where = ["--data-dir", str(tmp_path / "data")]
    nouns = ("users", "permissions", "policies", "operator-policies", "vhosts")
    with running_broker(*where) as first:
        done(first, "users", "add", "ann", "secret", "--tags", "a,b")
        done(first, "users", "add", "bob", "secret")
        done(first, "vhosts", "add", "v")
        done(first, "vhosts", "add", "gone")
        for vhost in ("v", "gone"):
            done(first, "permissions", "set", "ann", "", "w", "r", "--vhost", vhost)
            done(first, "policies", "set", "p", "^q", '{"max-length": 5}', "--vhost", vhost)
        done(first, "operator-policies", "set", "o", "", '{"expires": 5000}', "--priority", "3")
        done(first, "vhosts", "delete", "gone")
        done(first, "users", "delete", "bob")
        before = {noun: listed(first, noun) for noun in nouns}
        first.stop(number)
    with running_broker(*where) as second:
        assert {noun: listed(second, noun) for noun in nouns} == before
    assert [user["name"] for user in before["users"]] == ["ann", "guest"]
    assert before["users"][0]["tags"] == ["a", "b"]
    assert [row["vhost"] for row in before["permissions"]] == ["/", "v"]
    assert [(row["vhost"], row["definition"]) for row in before["policies"]] == [
        ("v", {"max-length": 5})
    ]
    assert [(row["name"], row["priority"]) for row in before["operator-policies"]] == [("o", 3)]


@pytest.mark.parametrize("noun", ["users", "vhosts"])
def test_deleting_a_user_or_a_vhost_closes_its_connections_and_no_other(
    own: RunningBroker, noun: str
) -> None:
    done(own, "users", "add", "ann", "secret")
    done(own, "vhosts", "add", "v")
    done(own, "permissions", "set", "ann", ".*", ".*", ".*", "--vhost", "v")
    with connect(own.address()) as other:
        mine = connect(url(own, "ann:secret", "v"))
        channel = mine.channel()
        channel.declare_exchange("x", "fanout", durable=True)
        channel.declare_queue("q", durable=True)
        channel.bind_queue("q", "x", "")
        name = "ann" if noun == "users" else "v"
        said = done(own, noun, "delete", name)
        assert said == f"{noun[:-1]} '{name}' was deleted, 1 connection closed"
        with pytest.raises(HarebellError, match=f"320.*{noun[:-1]} '{name}' is deleted"):
            channel.declare_queue("q2")
        other.channel().declare_queue("", exclusive=True)
    with pytest.raises(HarebellError):
        connect(url(own, "ann:secret", "v"))


def test_a_vhost_of_the_same_name_begins_empty(own: RunningBroker) -> None:
    for _ in range(2):
        done(own, "vhosts", "add", "v")
        assert listed(own, "vhosts")[1]["queues"] == 0
        assert [row["vhost"] for row in listed(own, "permissions")] == ["/"]
        done(own, "permissions", "set", "guest", ".*", ".*", ".*", "--vhost", "v")
        with connect(url(own, "guest:guest", "v")) as connection:
            connection.channel().declare_queue("q", durable=True)
        done(own, "vhosts", "delete", "v")


def test_a_policy_reaches_a_queue_that_is_there_already(own: RunningBroker) -> None:
    with connect(own.address()) as connection:
        channel = connection.channel()
        for name in ("q", "dead"):
            channel.declare_queue(name)
        definition = '{"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}'
        done(own, "policies", "set", "p", "^q$", definition, "--apply-to", "queues")
        channel.publish(b"m", routing_key="q")
        taken = channel.get("q")
        assert taken is not None
        taken.reject(requeue=False)
        assert channel.declare_queue("dead", passive=True).message_count == 1


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("users add guest x", 1, "there is a user 'guest' already"),
        ("users add ann ''", 1, "the password is empty"),
        ("users delete gust", 1, "no user 'gust': did you mean 'guest'?"),
        ("users delete guest", 1, "user 'guest' is the last one"),
        ("users lst", 2, "No action 'lst': did you mean list?"),
        ("users list --jsn", 2, "No option --jsn: did you mean --json?"),
        ("permissions set guest ( a a", 1, "the configure pattern '(' is not a regular expression"),
        ("permissions set guest a a a --vhost v", 1, "no vhost 'v': known are '/'"),
        ("permissions clear nobody", 1, "no user 'nobody'"),
        ("vhosts delete /", 1, "cannot be deleted"),
        ("vhosts add /", 1, "there is a vhost '/' already"),
        ("vhosts add night --store 2", 1, "there is no store 2 here: this is store 1"),
        ("policies set p ^a nonsense", 2, "is not a JSON object"),
        ('policies set p ^a {"max-lenth":1}', 1, "are not recognised policy settings"),
        ('policies set p ^a {"max-length":9223372036854775808}', 1, "which is too large"),
        ("policies clear p", 1, "no policy 'p' in vhost '/'"),
        ("operator-policies clear p", 1, "`harebell operator-policies list` shows all"),
    ],
)
def test_an_impossible_request_is_one_sentence_with_a_way_to_correct_it(
    broker: RunningBroker, line: str, code: int, sentence: str
) -> None:
    words = ["" if word == "''" else word for word in line.split()]
    result = run(broker, *words)
    assert sentence in error_of(result)
    assert result.returncode == code


def test_without_a_broker_the_exit_code_says_so(tmp_path: Path) -> None:
    result = run_harebell("users", "list", "--data-dir", str(tmp_path))
    assert result.returncode == 4
    assert "no broker runs on the data directory" in error_of(result)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_metadata_of_vhosts_outlive_the_broker(tmp_path: Path, number: signal.Signals) -> None:
    where = ["--data-dir", str(tmp_path / "data")]
    with running_broker(*where) as first:
        done(first, "vhosts", "add", "v", "--description", "for people", "--tags", "a, b")
        done(first, "vhosts", "set", "v", "--default-queue-type", "quorum", "--durability", "os")
        done(first, "vhosts", "set", "/", "--description", "the first")
        assert done(first, "trace", "on") == "tracing of vhost '/' is on"
        done(first, "trace", "on", "--vhost", "v")
        assert done(first, "trace", "off", "--vhost", "v") == "tracing of vhost 'v' is off"
        before = listed(first, "vhosts")
        first.stop(number)
    with running_broker(*where) as second:
        assert listed(second, "vhosts") == before
    slash, v = before
    assert (slash["description"], slash["tracing"], slash["tags"]) == ("the first", True, [])
    assert (v["description"], v["tags"], v["tracing"]) == ("for people", ["a", "b"], False)
    assert (v["default_queue_type"], v["durability"]) == ("quorum", "os")

"""Topic permissions, limits and parameters of a running broker: by command, at once, for good."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harebell.base.errors import HarebellError
from harebell.client.blocking import connect
from tests.cli.conftest import done, error_of, listed, run
from tests.running import RunningBroker, running_broker


def test_topic_permissions_hold_from_the_next_method_on(own: RunningBroker) -> None:
    with connect(own.address()) as connection:
        done(own, "topic-permissions", "set", "guest", "amq.topic", r"^{username}\.", "^{vhost}")
        channel = connection.channel()
        channel.publish(b"m", exchange="amq.topic", routing_key="guest.1")
        queue = channel.declare_queue("").name
        channel.bind_queue(queue, "amq.topic", "/.x")
        with pytest.raises(
            HarebellError,
            match=r"403.*write access to topic 'x' in exchange 'amq\.topic' in vhost '/' refused "
            "for user 'guest'",
        ):
            channel.publish(b"m", exchange="amq.topic", routing_key="x")
        done(own, "topic-permissions", "clear", "guest", "amq.topic")
        again = connection.channel()
        again.publish(b"m", exchange="amq.topic", routing_key="x")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_everything_is_there_after_a_restart(tmp_path: Path, number: signal.Signals) -> None:
    where = ["--data-dir", str(tmp_path / "data")]
    nouns = ("topic-permissions", "limits", "parameters", "global-parameters", "permissions")
    with running_broker(*where) as first:
        done(first, "users", "add", "ann", "secret")
        done(first, "vhosts", "add", "v")
        for vhost in ("/", "v"):
            done(first, "topic-permissions", "set", "ann", "x", "w", "r", "--vhost", vhost)
        done(first, "topic-permissions", "set", "ann", "y", "w", "r", "--vhost", "v")
        done(first, "topic-permissions", "clear", "ann", "--vhost", "v")
        done(first, "limits", "set", "--user", "ann", "--max-connections", "3")
        done(first, "limits", "set", "--user", "ann", "--max-channels", "7")
        done(first, "limits", "set", "--vhost", "v", "--max-queues", "5", "--max-connections", "2")
        done(first, "limits", "set", "--vhost", "v", "--max-connections", "-1")
        done(first, "limits", "set", "--vhost", "/", "--max-queues", "9")
        done(first, "limits", "clear", "--vhost", "/")
        done(first, "parameters", "set", "tool", "s", '{"src-uri": ["amqp://"], "n": null}')
        done(first, "parameters", "set", "tool", "gone", "1")
        done(first, "parameters", "clear", "tool", "gone")
        done(first, "global-parameters", "set", "cluster_name", '"mine"')
        done(first, "global-parameters", "set", "gone", "null")
        done(first, "global-parameters", "clear", "gone")
        before = {noun: listed(first, noun) for noun in nouns}
        first.stop(number)
    with running_broker(*where) as second:
        assert {noun: listed(second, noun) for noun in nouns} == before
        table = done(second, "parameters", "list").splitlines()
        assert table[1].split()[:3] == ["/", "tool", "s"]
    topics = before["topic-permissions"]
    assert [(row["vhost"], row["exchange"]) for row in topics] == [("/", "x")]
    assert [tuple(row.values()) for row in before["limits"]] == [
        ("v", "", "max-queues", 5),
        ("", "ann", "max-connections", 3),
        ("", "ann", "max-channels", 7),
    ]
    assert [row["name"] for row in before["parameters"]] == ["limits", "s"] or [
        row["name"] for row in before["parameters"]
    ] == ["s", "limits"]
    assert before["global-parameters"] == [{"name": "cluster_name", "value": "mine"}]


def test_limits_hold_for_whoever_comes_next(own: RunningBroker) -> None:
    with connect(own.address()) as first:
        done(own, "limits", "set", "--vhost", "/", "--max-connections", "1", "--max-queues", "1")
        with pytest.raises(HarebellError, match=r"530.*connection limit \(1\) is reached"):
            connect(own.address())
        channel = first.channel()
        channel.declare_queue("a")
        with pytest.raises(HarebellError, match=r"406.*queue limit in vhost '/' \(1\) is reached"):
            channel.declare_queue("b")
        done(own, "limits", "clear", "--vhost", "/")
        connect(own.address()).close()
        done(own, "limits", "set", "--user", "guest", "--max-channels", "1")
        first.channel()
        with pytest.raises(HarebellError, match=r"530.*maximum allowed user limit of \(1\)"):
            first.channel()


def test_a_broker_has_limits_of_its_own() -> None:
    with (
        running_broker("--connection-max", "2", "--channel-max-per-node", "2") as broker,
        connect(broker.address()) as first,
        connect(broker.address()) as second,
    ):
        with pytest.raises(HarebellError, match=r"530.*node connection limit \(2\) is reached"):
            connect(broker.address())
        first.channel()
        second.channel()
        with pytest.raises(HarebellError, match=r"530.*maximum allowed limit of \(2\)"):
            first.channel()


def test_a_broker_has_a_most_of_everything() -> None:
    asked = ("--vhost-max", "1", "--cluster-queue-limit", "1", "--cluster-exchange-limit", "10")
    with (
        running_broker(*asked, "--consumer-max-per-channel", "1") as broker,
        connect(broker.address()) as connection,
    ):
        refused = run(broker, "vhosts", "add", "two")
        text = "cannot create vhost 'two': vhost limit of 1 is reached"
        assert refused.returncode != 0
        assert text in error_of(refused)
        channel = connection.channel()
        channel.declare_queue("a")
        with pytest.raises(HarebellError, match=r"406.*'b': queue limit in cluster \(1\) is reach"):
            channel.declare_queue("b")
        channel = connection.channel()
        channel.declare_exchange("x", "fanout")
        with pytest.raises(HarebellError, match=r"406.*'y' in vhost '/': exchange limit of 10 is"):
            channel.declare_exchange("y", "fanout")
        given = b'{"queues": [{"name": "q", "vhost": "/"}, {"name": "r", "vhost": "/"}]}'
        refused = run(broker, "definitions", "import", "-", stdin=given)
        assert "queue limit in cluster (1) is reached" in error_of(refused)
        channel = connection.channel()
        # It ends when nobody has it any more.
        one = channel.consume("a")
        with pytest.raises(HarebellError, match=r"530.*reached maximum \(1\) of consumers"):
            channel.consume("a")
        del one


def test_a_password_is_tried_without_a_login(own: RunningBroker) -> None:
    assert done(own, "users", "authenticate", "guest", "guest") == (
        "user 'guest' can log in with this password"
    )
    wrong = run(own, "users", "authenticate", "guest", stdin=b"wrong\n")
    assert wrong.returncode == 1
    assert "user 'guest' cannot log in with this password" in error_of(wrong)


def test_deleting_a_user_or_a_vhost_takes_topic_permissions_along(own: RunningBroker) -> None:
    done(own, "users", "add", "ann", "secret")
    done(own, "vhosts", "add", "v")
    done(own, "topic-permissions", "set", "ann", "x", "", "")
    done(own, "topic-permissions", "set", "guest", "x", "", "", "--vhost", "v")
    done(own, "users", "delete", "ann")
    done(own, "vhosts", "delete", "v")
    assert listed(own, "topic-permissions") == []
    done(own, "users", "add", "ann", "secret")
    done(own, "vhosts", "add", "v")
    assert listed(own, "topic-permissions") == []


@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        (["topic-permissions", "set", "guest", "x", "(", ""], 1, "the write pattern '(' is not a"),
        (["topic-permissions", "set", "gust", "x", "", ""], 1, "no user 'gust'"),
        (["topic-permissions", "clear", "guest", "x"], 1, "no topic permissions for exchange 'x'"),
        (["limits", "set", "--max-queues", "1"], 1, "give one of --vhost and --user"),
        (["limits", "set", "--vhost", "/"], 1, "no limit is given: give one, such as"),
        (["limits", "set", "--vhost", "/", "--max-channels", "1"], 1, "a vhost has no max-chann"),
        (["limits", "set", "--user", "guest", "--max-queues", "1"], 1, "a user has no max-queues"),
        (["limits", "set", "--vhost", "v", "--max-queues", "1"], 1, "no vhost 'v'"),
        (["limits", "set", "--vhost", "/", "--max-queues", f"{2**31}"], 1, "is 2147483648: give"),
        (["limits", "clear"], 1, "give one of --vhost and --user"),
        (["parameters", "set", "tool", "s", "{"], 2, "the value '{' is not JSON"),
        (["parameters", "set", "policy", "s", "1"], 1, "has commands of its own"),
        (["parameters", "set", "", "s", "1"], 1, "the name of a component must not be empty"),
        (["parameters", "set", "tool", "s", f"{2**70}"], 1, "of parameter 's' cannot be kept"),
        (["parameters", "set", "tool", "s", "[" * 40 + "]" * 40], 1, "cannot be kept"),
        (["parameters", "clear", "tool", "s"], 1, "no parameter 'tool' 's' in vhost '/'"),
        (["global-parameters", "clear", "n"], 1, "no global parameter 'n'"),
    ],
)
def test_a_wrong_argument_is_named(
    broker: RunningBroker, line: list[str], code: int, sentence: str
) -> None:
    result = run(broker, *line)
    assert result.returncode == code, result.stderr
    assert sentence in error_of(result)

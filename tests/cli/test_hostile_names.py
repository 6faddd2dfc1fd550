"""Names and bodies that would give orders to a terminal are shown there, and not obeyed."""

from __future__ import annotations

import json
import os
import pty
import subprocess

from harebell.client.blocking import connect
from tests.running import RunningBroker, command, environment, running_broker

ESCAPE = "\x1b]0;owned\x07\x9b2J"
SHOWN = "\\u001b]0;owned\\u0007\\u009b2J"


def run(*words: str) -> str:
    done = subprocess.run(
        [command(), *words], env=environment(), capture_output=True, timeout=60, check=False
    )
    return (done.stdout + done.stderr).decode()


def on_a_terminal(*words: str) -> str:
    """What a verb prints where a terminal would obey it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([command(), *words], env=environment(), stdout=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            more = os.read(ours, 65_536)
        except OSError:
            break  # the other side is closed
        if not more:
            break
        seen += more
    os.close(ours)
    assert process.wait(60) == 0
    return seen.decode()


def filled(broker: RunningBroker) -> str:
    url = f"amqp://guest:guest@127.0.0.1:{broker.port}"
    with connect(url, properties={"connection_name": "me" + ESCAPE}) as connection:
        channel = connection.channel()
        channel.declare_queue("q" + ESCAPE, durable=True)
        channel.publish(("body" + ESCAPE).encode(), routing_key="q" + ESCAPE)
        place = ("--data-dir", str(broker.data_dir))
        for verb in ("queues", "bindings", "connections", "channels"):
            for flags in ((), ("--json",)):
                text = run(verb, "list", *flags, *place)
                assert "\x1b" not in text
                assert "\x9b" not in text
                assert "\x07" not in text
        assert "q" + SHOWN in run("queues", "list", *place)
        found = json.loads(run("queues", "list", "--json", *place))
        assert found[0]["name"] == "q" + ESCAPE
    return url


def test_listings_and_messages_do_not_speak_to_the_terminal() -> None:
    with running_broker() as broker:
        url = filled(broker)
        look = ("get", "--url", url, "-q", "q" + ESCAPE, "--requeue")
        for output in ("body", "json"):
            text = on_a_terminal(*look, "-o", output)
            assert SHOWN in text
            assert "\x1b" not in text
        assert on_a_terminal(*look, "-o", "raw") == "body" + ESCAPE
        assert "body" + ESCAPE in run(*look)
        missing = run("get", "--url", url, "-q", "no" + ESCAPE)
        assert "\x1b" not in missing
        assert "\x1b" not in broker.log

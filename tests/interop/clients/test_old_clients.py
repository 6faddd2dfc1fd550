"""Clients of 2007 to 2011 as they were published, which speak 0-8: they just work.

Their archives are fetched once below `build/interop` (`tests.interop.suites.fetch`): Python's
amqplib 1.0.2 is rewritten for Python 3 there, and node's amqp 0.0.2 finds in node what it expects.
`make interop` runs their whole suites; here each does a day's work, with a 0-9-1 client at the
other end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pika
import pytest

from tests.interop.suites.catalogue import SUITES, Suite
from tests.interop.suites.fetch import fetch, source
from tests.running import RunningBroker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1_200)]

Names = Callable[[str], str]
_SECONDS = 300.0


def _suite(label: str) -> Suite:
    (found,) = (suite for suite in SUITES if suite.label == label)
    fetch(found)
    return found


@pytest.fixture(scope="module")
def amqplib() -> Suite:
    """Python's amqplib, ready to be imported."""
    return _suite("amqplib 1.0.2 (PyPI)")


@pytest.fixture(scope="module")
def node_amqp() -> Suite:
    """node's amqp of 2010."""
    suite = _suite("amqp 0.0.2 (npm)")
    for name, text in suite.files.items():
        (source(suite) / name).write_text(text)
    return suite


def _run(command: list[str], suite: Suite, script: str, *words: str) -> str:
    """What a script says that works with the client."""
    done = subprocess.run(
        [*command, textwrap.dedent(script), *words],
        cwd=source(suite),
        env={**os.environ, **suite.variables, "PYTHONPATH": str(source(suite))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _python(suite: Suite, script: str, *words: str) -> str:
    return _run([sys.executable, "-W", "ignore", "-c"], suite, script, *words)


def test_amqplib_sends_and_receives(broker: RunningBroker, name: Names, amqplib: Suite) -> None:
    script = """
        import sys
        from amqplib.client_0_8 import Connection, Message
        host, queue = sys.argv[1:]
        connection = Connection(host, userid="guest", password="guest")
        channel = connection.channel()
        channel.access_request("/data", active=True, write=True, read=True)
        channel.exchange_declare(queue, "fanout", auto_delete=False)
        channel.queue_declare(queue)
        channel.queue_bind(queue, queue)
        for size in (0, 5, 300_000):
            sent = Message("x" * size, content_type="text/plain", application_headers={"n": size})
            channel.basic_publish(sent, queue, "any")
        got = []
        def received(message):
            got.append(len(message.body))
            assert message.application_headers == {"n": len(message.body)}
            assert message.content_type == "text/plain"
            channel.basic_ack(message.delivery_tag)
        channel.basic_consume(queue, "tag", callback=received)
        while len(got) < 3:
            channel.wait()
        channel.queue_unbind(queue, queue, "")
        channel.queue_delete(queue)
        channel.exchange_delete(queue)
        connection.close()
        print(got)
    """
    assert _python(amqplib, script, f"127.0.0.1:{broker.port}", name("old")) == "[0, 5, 300000]\n"


def test_amqplib_gets_what_0_8_promises(broker: RunningBroker, name: Names, amqplib: Suite) -> None:
    script = """
        import sys
        from amqplib.client_0_8 import AMQPChannelException, Connection, Message
        host, queue = sys.argv[1:]
        connection = Connection(host, userid="guest", password="guest")
        channel = connection.channel()
        channel.queue_declare(queue, auto_delete=False)
        channel.basic_publish(Message("nobody is here"), "", queue, immediate=True)
        channel.wait()
        code, text, exchange, key, message = channel.returned_messages.get()
        print(code, text, key == queue, message.body)
        channel.flow(False)
        channel.flow(True)
        channel.queue_delete(queue)
        try:
            channel.queue_delete(queue)
        except AMQPChannelException as error:
            print(error.args[0])
        connection.close()
    """
    said = _python(amqplib, script, f"127.0.0.1:{broker.port}", name("old"))
    assert said == "313 NO_CONSUMERS True nobody is here\n404\n"


def test_amqplib_reads_what_a_modern_client_wrote(
    broker: RunningBroker, name: Names, amqplib: Suite
) -> None:
    queue = name("old")
    modern = pika.BlockingConnection(pika.URLParameters(broker.address()))
    channel = modern.channel()
    channel.queue_declare(queue)
    headers = {"flag": True, "many": [1, 2], "large": 2**40, "text": "plain"}
    channel.basic_publish("", queue, b"from 0-9-1", pika.BasicProperties(headers=headers))
    script = """
        import sys
        from amqplib.client_0_8 import Connection, Message
        host, queue = sys.argv[1:]
        connection = Connection(host, userid="guest", password="guest")
        channel = connection.channel()
        message = channel.basic_get(queue, no_ack=True)
        headers = message.application_headers
        print(message.body.decode(), headers["flag"], headers["many"]["1"], headers["large"])
        back = Message("from 0-8", application_headers={"n": 1}, delivery_mode=2)
        channel.basic_publish(back, "", queue)
        connection.close()
    """
    said = _python(amqplib, script, f"127.0.0.1:{broker.port}", queue)
    assert said == "from 0-9-1 1 2 1099511627776\n"
    _, properties, body = channel.basic_get(queue, auto_ack=True)
    assert (body, properties.headers, properties.delivery_mode) == (b"from 0-8", {"n": 1}, 2)
    modern.close()


def test_nodes_amqp_of_2010_sends_and_receives(
    broker: RunningBroker, name: Names, node_amqp: Suite
) -> None:
    script = """
        const amqp = require("./amqp");
        const [port, queueName] = process.argv.slice(1);
        const connection = amqp.createConnection({ host: "127.0.0.1", port: Number(port) });
        connection.addListener("ready", () => {
          const queue = connection.queue(queueName);
          queue.bind("#");
          queue.subscribe((json) => {
            console.log(JSON.stringify(json.two));
            connection.end();
          }).addCallback(() => {
            connection.publish(queueName, { two: 1 });
          });
        });
    """
    said = _run(["node", "-e"], node_amqp, script, str(broker.port), name("old"))
    assert said.strip() == "1"

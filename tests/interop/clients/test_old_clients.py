"""Clients of 0-8 and 0-9 as they were published, the oldest in 2007: they just work.

Their archives are fetched once below `build/interop` (`tests.interop.suites.fetch`): Python's
amqplib 1.0.2 and Qpid's client are rewritten for Python 3 there, node's amqp 0.0.2 finds in node
what it expects, and txAMQP gets the documents of 0-8 and 0-9 that it reads.
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
from tests.interop.suites.fetch import directory, fetch, packages, source
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
    paths = [source(suite), source(suite) / "src", packages(suite)]
    done = subprocess.run(
        [*command, textwrap.dedent(script), *words],
        cwd=source(suite),
        env={**os.environ, **suite.variables, "PYTHONPATH": os.pathsep.join(map(str, paths))},
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


VERSIONS = pytest.mark.parametrize("version", ["0-8", "0-9"])


@VERSIONS
def test_qpids_client_sends_receives_and_commits(
    broker: RunningBroker, name: Names, version: str
) -> None:
    qpid = _suite(f"qpid-python 1.36.0.post1 (PyPI) in {version}")
    script = """
        import sys
        from qpid import specs_config
        from qpid.client import Client
        from qpid.content import Content
        from qpid.spec08 import load
        port, queue, version = sys.argv[1:]
        spec = load(getattr(specs_config, "amqp_spec_" + version.replace("-", "_")))
        client = Client("127.0.0.1", int(port), spec)
        client.start(username="guest", password="guest")
        channel = client.channel(1)
        channel.channel_open()
        channel.queue_declare(queue=queue, exclusive=True)
        channel.queue_bind(queue=queue, exchange="amq.topic", routing_key=queue + ".#")
        channel.tx_select()
        for size in (0, 5, 300000):
            sent = Content("x" * size, properties={"headers": {"n": size}, "content_type": "a/b"})
            channel.basic_publish(exchange="amq.topic", routing_key=queue + ".x", content=sent)
        channel.tx_commit()
        tag = channel.basic_consume(queue=queue).consumer_tag
        received = client.queue(tag)
        for size in (0, 5, 300000):
            found = received.get(timeout=60)
            assert len(found.content.body) == size, found
            assert found.content["headers"] == {"n": size}, found
            assert found.content["content_type"] == "a/b", found
            channel.basic_ack(delivery_tag=found.delivery_tag)
        channel.tx_commit()
        print(channel.queue_delete(queue=queue).message_count)
        client.close()
    """
    assert _python(qpid, script, str(broker.port), name("old"), version) == "0\n"


@VERSIONS
def test_txamqp_sends_and_receives(broker: RunningBroker, name: Names, version: str) -> None:
    txamqp = _suite("txamqp 0.8.2 (PyPI) in 0-9")
    script = """
        import sys
        from twisted.internet import reactor
        from twisted.internet.defer import inlineCallbacks
        from twisted.internet.protocol import ClientCreator
        from txamqp.client import TwistedDelegate
        from txamqp.content import Content
        from txamqp.protocol import AMQClient
        from txamqp.spec import load
        port, queue, document = sys.argv[1:]

        @inlineCallbacks
        def work():
            creator = ClientCreator(reactor, AMQClient, TwistedDelegate(), "/", load(document))
            client = yield creator.connectTCP("127.0.0.1", int(port))
            yield client.authenticate("guest", "guest")
            channel = yield client.channel(1)
            yield channel.channel_open()
            yield channel.queue_declare(queue=queue, exclusive=True)
            for size in (0, 5, 300000):
                sent = Content("x" * size, properties={"headers": {"n": size}})
                channel.basic_publish(routing_key=queue, content=sent)
            yield channel.basic_consume(queue=queue, consumer_tag="tag")
            received = yield client.queue("tag")
            for size in (0, 5, 300000):
                found = yield received.get(timeout=60)
                assert len(found.content.body) == size, found
                assert found.content["headers"] == {"n": size}, found
                channel.basic_ack(delivery_tag=found.delivery_tag)
            gone = yield channel.queue_delete(queue=queue)
            yield client.close(within=60)
            return gone.message_count

        def told(result):
            print(result)
            reactor.stop()

        work().addBoth(told)
        reactor.run()
    """
    documents = {"0-8": "specs/qpid/amqp.0-8.xml", "0-9": "specs/standard/amqp0-9.stripped.xml"}
    document = directory(txamqp) / documents[version]
    said = _python(txamqp, script, str(broker.port), name("old"), str(document))
    assert said == "0\n"

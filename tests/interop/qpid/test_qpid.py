"""Qpid's client of 0-10: its own tests of brokers, and days of work with clients of 0-9-1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from tests.interop.qpid import inside
from tests.interop.qpid.fetch import fetched
from tests.interop.qpid.known import KNOWN, as_table
from tests.robustness.lives import kill, life
from tests.running import RunningBroker, running_broker

pytestmark = pytest.mark.timeout(1_200)

_SECONDS = 600.0
_PACKAGE = "qpid_tests.broker_0_10"
MODULES = (
    "alternate_exchange",
    "broker",
    "dtx",
    "example",
    "exchange",
    "extensions",
    "lvq",
    "management",
    "message",
    "msg_groups",
    "new_api",
    "persistence",
    "priority",
    "qmf_events",
    "query",
    "queue",
    "stats",
    "threshold",
    "tx",
)
"""All that there are."""


@pytest.fixture(scope="module")
def qpid() -> Path:
    """Where `import qpid` finds the client."""
    return fetched()


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    """A broker of this module's own."""
    with running_broker() as running:
        yield running


def _python(qpid: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *words],
        cwd=qpid,
        env={**os.environ, "PYTHONPATH": str(qpid)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _script(qpid: Path, script: str, *words: str) -> str:
    """What a script says that works with the client."""
    return _python(qpid, "-c", textwrap.dedent(script), *words)


@pytest.mark.parametrize("module", MODULES)
def test_qpids_own_tests_pass_but_for_those_in_the_list(
    broker: RunningBroker, qpid: Path, module: str
) -> None:
    address = f"guest/guest@127.0.0.1:{broker.port}"
    said = _python(qpid, inside.__file__, "--seconds", "120", address, f"{_PACKAGE}.{module}")
    outcomes = json.loads(said.splitlines()[-1])
    assert outcomes
    assert {
        name: how for name, how in outcomes.items() if how != "passed" and name not in KNOWN
    } == {}
    passing = [name for name in KNOWN if outcomes.get(name) == "passed"]
    assert passing == [], "take them out of the list"


def test_every_module_of_qpids_tests_is_run(qpid: Path) -> None:
    found = (qpid / _PACKAGE.replace(".", "/")).glob("*.py")
    assert sorted(each.stem for each in found if each.stem != "__init__") == list(MODULES)


def test_the_documentation_has_the_list() -> None:
    page = Path(__file__).parents[3] / "docs/protocols/amqp-0-10.md"
    assert as_table() in page.read_text()


def test_a_message_goes_from_qpid_to_qpid(broker: RunningBroker, qpid: Path) -> None:
    script = """
        import sys
        from qpid.messaging import Connection, Message
        connection = Connection(sys.argv[1], username="guest", password="guest",
                                sasl_mechanisms="PLAIN")
        connection.open()
        session = connection.session()
        sender = session.sender("work; {create: always, delete: always}")
        receiver = session.receiver("work")
        for content in ("text", {"a": [1, None, "x"]}, "x" * 300000):
            sender.send(Message(content, durable=True, priority=7, properties={"n": 1}))
            found = receiver.fetch(timeout=60)
            assert found.content == content, found
            assert (found.durable, found.priority, found.properties["n"]) == (True, 7, 1), found
            session.acknowledge()
        browser = session.receiver("work; {mode: browse}")
        sender.send(Message("seen"))
        print(browser.fetch(timeout=60).content, receiver.fetch(timeout=60).content)
        session.acknowledge()
        connection.close()
    """
    assert _script(qpid, script, f"127.0.0.1:{broker.port}") == "seen seen\n"


def test_qpid_and_a_modern_client_read_each_other(broker: RunningBroker, qpid: Path) -> None:
    modern = pika.BlockingConnection(pika.URLParameters(broker.address()))
    channel = modern.channel()
    channel.queue_declare("there")
    channel.queue_declare("back")
    properties = pika.BasicProperties(
        content_type="text/plain", headers={"n": 2**40, "t": "x"}, delivery_mode=2
    )
    channel.basic_publish("", "there", b"from 0-9-1", properties)
    script = """
        import sys
        from qpid.messaging import Connection, Message
        connection = Connection(sys.argv[1], username="guest", password="guest",
                                sasl_mechanisms="PLAIN")
        connection.open()
        session = connection.session()
        found = session.receiver("there").fetch(timeout=60)
        print(found.content, found.durable, found.properties["n"], found.properties["t"])
        session.acknowledge()
        session.sender("back").send(
            Message("from 0-10", durable=True, correlation_id="c", properties={"a": 1})
        )
        connection.close()
    """
    said = _script(qpid, script, f"127.0.0.1:{broker.port}")
    assert said == f"from 0-9-1 True {2**40} x\n"
    _, found, body = channel.basic_get("back", auto_ack=True)
    assert body == b"from 0-10"
    assert (found.delivery_mode, found.correlation_id) == (2, "c")
    assert found.headers["a"] == 1
    for name in ("there", "back"):
        channel.queue_delete(name)
    modern.close()


def test_completed_transfers_survive_a_kill(tmp_path: Path, qpid: Path) -> None:
    begin = """
        import sys
        from qpid.messaging import Connection, Message
        connection = Connection(sys.argv[1], username="guest", password="guest",
                                sasl_mechanisms="PLAIN")
        connection.open()
        session = connection.session()
        receiver = session.receiver("kept; {create: always, node: {durable: True, x-declare: "
                                    "{alternate-exchange: 'amq.fanout'}}}")
    """
    write = """
        sender = session.sender("kept")
        for number in range(20):
            sender.send(Message(str(number), durable=True), sync=True)
        for number in range(5):
            session.acknowledge(receiver.fetch(timeout=60))
        print("complete")
    """
    read = """
        print(" ".join(receiver.fetch(timeout=60).content for number in range(15)))
        session.acknowledge()
        connection.close()
    """
    with life(tmp_path / "data") as first:
        script = textwrap.dedent(begin) + textwrap.dedent(write)
        assert _script(qpid, script, f"127.0.0.1:{first.port}") == "complete\n"
        kill(first)
    with life(tmp_path / "data") as again:
        script = textwrap.dedent(begin) + textwrap.dedent(read)
        said = _script(qpid, script, f"127.0.0.1:{again.port}")
    assert said == " ".join(str(number) for number in range(5, 20)) + "\n"

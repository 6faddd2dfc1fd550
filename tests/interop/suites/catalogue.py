"""The suites: where they come from, how they are run, and what of them is left out and why."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
PORT = 5672
HTTP_PORT = 15672
URL = f"amqp://guest:guest@127.0.0.1:{PORT}/%2F"


@dataclass(frozen=True)
class Suite:
    """One suite.

    Args:
        name: the client, as its registry names it.
        version: the release that is tested, with its own tests.
        registry: "pypi", "npm", "debian", or "source" for what Debian builds a package from.
        sha256: of the archive.
        runner: "pytest", "node" (its own test runner), "vows", "scripts" (each file is a test),
            "go", "java" (JUnit's), "phpt" (PHP's format), or "qpid" (Qpid's, see
            `tests.interop.qpid`).
        tests: what the runner is given: files or patterns, below the archive's directory; modules
            for Qpid's; directories of packages for Go's; classes that list others for Java's.
        amqp: the version of AMQP, for a client that runs its tests in several; "" for others.
        needs: packages beside the client, with versions; "--no-deps" is not assumed, except for
            Debian's, which are unpacked over it.
        variables: environment variables.
        cleaned: whether it deletes queues over HTTP; see cleaner.py.
        files: files to be written before the run, by name.
        old_python: directories in Python 2 that are rewritten for Python 3 after unpacking.
        specs: documents of AMQP that the client reads, which its archive lacks: by path below the
            suite's directory, the name that Qpid's archive has them by.
        rabbitmq: lines of configuration without which RabbitMQ turns the client away.
        ours: why tests pass on Harebell that do not on RabbitMQ, where one reason is enough.
        left_out: patterns of test names (for pytest: `-k` words) and why they do not count.
    """

    name: str
    version: str
    registry: str
    sha256: str
    runner: str
    tests: tuple[str, ...]
    amqp: str = ""
    needs: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    cleaned: bool = False
    files: dict[str, str] = field(default_factory=dict)
    old_python: tuple[str, ...] = ()
    specs: dict[str, str] = field(default_factory=dict)
    rabbitmq: tuple[str, ...] = ()
    ours: str = ""
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The client, its version and where it is from, for people."""
        origin = {"pypi": "PyPI", "npm": "npm"}.get(self.registry, "Debian")
        version = f" in {self.amqp}" if self.amqp else ""
        return f"{self.name} {self.version} ({origin}){version}"


_TLS = "needs certificates that its archive does not have, or connects to other hosts"
_OLDER = "uses features of 0-8 and 0-9 that 0-9-1 does not have, or Qpid's layout of 0-8"
_QPID_0_8, _QPID_0_9 = (f"amqp-0-{minor}-qpid-stripped.xml" for minor in (8, 9))
_QPID_TESTS = tuple(
    f"0_8.{name}" for name in ("basic", "broker", "example", "exchange", "queue", "testlib", "tx")
)
_PROTON = "usr/share/proton/examples/python"
_GO = "usr/share/gocode/src/github.com/rabbitmq/amqp091-go"
_JAVA = "src/test/java/com/rabbitmq/client/test"
_QPID_TESTS_0_9 = tuple(f"0_9.{name}" for name in ("query", "queue", "messageheader", "echo"))

SUITES = (
    Suite(
        "amqp", "5.4.2", "pypi",
        "9362660c4a31150cf18e78cae2ce8aa1e929fc6c6739e69f6dd5dbea9c3edc82",
        "pytest", ("t/integration/test_rmq.py",),
        variables={"RABBITMQ_HOST": "127.0.0.1", "RABBITMQ_5672_TCP": str(PORT)},
        left_out={"tls": _TLS},
    ),
    Suite(
        "kombu", "5.7.0", "pypi",
        "31e62fdfd2381caa3422f8e02b84a491d9a2180ddda74507b57f4cb1e1c2c2c9",
        "pytest", ("t/integration/test_py_amqp.py",),
        variables={"RABBITMQ_HOST": "127.0.0.1", "RABBITMQ_5672_TCP": str(PORT)},
    ),
    Suite(
        "amqpstorm", "3.1.4", "pypi",
        "8c4c81430b3e3f06c88474a8ed883b48a62068f14490e339d6e0fc3329f030d3",
        "pytest",
        tuple(f"amqpstorm/tests/functional/test_{part}.py" for part in (
            "basic", "exchange", "generic", "legacy", "queue", "reliability", "tx",
        )),
        needs=("requests==2.32.5",),
        cleaned=True,
        variables={
            "AMQP_HOST": "127.0.0.1", "AMQP_USERNAME": "guest", "AMQP_PASSWORD": "guest",
            "AMQP_URI": URL, "AMQP_HTTP_URL": f"http://127.0.0.1:{HTTP_PORT}",
        },
    ),
    Suite(
        "rabbitpy", "3.0.2", "pypi",
        "9322a1e82b4d3d1afc21a617ce0b1e86b921174328735e7d54abc9525805ae5c",
        "pytest", ("tests/test_integration.py", "tests/integration"),
        needs=("python-dotenv==1.2.1",),
        variables={"RABBITMQ_URL": URL},
    ),
    Suite(
        "aiorabbit", "1.0.3", "pypi",
        "e790326b66a306065173e29f49efb32368afd6d28ab0d72b4851d65ef3c95eba",
        "pytest", ("tests",),
        # The archive lacks the file that makes a package of the directory.
        files={
            "tests/__init__.py": "",
            "build/test-environment": f"export RABBITMQ_URI={URL.lower()}\n",
        },
        # Each test ends the whole run when it takes longer; the default is for an idle machine.
        variables={"ASYNC_TIMEOUT": "50"},
    ),
    Suite(
        "amqplib", "2.0.0", "npm",
        "d5d0437bac371000ec4731776f59dd2bc76177c76a6f7ba9a549ac26a5805a71",
        "node", ("test/*.test.js",),
        needs=("claire@0.4.1",),
        variables={"URL": f"amqp://127.0.0.1:{PORT}"},
    ),
    Suite(
        "amqp", "0.2.7", "npm",
        "21eb896b57084e36654db5d686193ceae8494749c096721139d48fd7bf21f028",
        "scripts", ("test/test-*.js",),
        needs=("lodash@4.17.21", "optimist@0.6.1", "longjohn@0.2.12"),
        left_out=dict.fromkeys(
            (
                "test-connection-blocked",
                "test-publish-confirms-callbacks-not-hanging-after-recovery",
                "test-reconnection",
            ),
            "stops or fills the RabbitMQ of the machine with `rabbitmqctl`",
        ),
    ),
    Suite(
        "bramqp", "0.6.1", "npm",
        "fbd6d08d08e35fe85a19b8c76ae7d62e78bd2af7c268dff22dfb2e7557ca84b3",
        "vows", ("test/*-test.js",),
        needs=("vows@0.8.3",),
    ),
    Suite(
        "golang-github-rabbitmq-amqp091-go-dev", "1.5.0-2", "debian",
        "5383a2e81c2830565dc530777c87f4275a4d98c7201f8391f29c581cbdedc47e",
        "go", (_GO,),
        needs=("golang-uber-goleak-dev=1.2.0-1",),
        variables={"AMQP_URL": f"amqp://guest:guest@127.0.0.1:{PORT}/"},
    ),
    Suite(
        "golang-github-streadway-amqp-dev", "0.0~git20200716.e6b33f4-3", "debian",
        "fabeb4e8c632ac38547102b79e1208b0e6c7cceea3a8377da93e606dccbbdde8",
        "go", ("usr/share/gocode/src/github.com/streadway/amqp",),
        variables={"AMQP_URL": f"amqp://guest:guest@127.0.0.1:{PORT}/"},
    ),
    Suite(
        "amqpy", "0.13.1", "pypi",
        "55be9f70ccbbcd7926cd0adff6289faf6f0c175e5ec65d1443d303f27360abfd",
        "pytest", ("amqpy/tests/test_*.py",),
        needs=("six==1.17.0",),
    ),
    Suite(
        "rabbitmq-java-client", "5.0.0-1.1", "source",
        "23c185a4b241c60223e8a800472d674f3d8e8fc5688bf99abe6ccdfd55e64aeb",
        "java", (f"{_JAVA}/functional/FunctionalTests.java", f"{_JAVA}/server/ServerTests.java"),
        needs=(
            "librabbitmq-client-java=5.0.0-1.1", "junit4=4.13.2-3", "libhamcrest-java=2.2-1",
            "libmockito-java=2.23.0-2", "libbyte-buddy-java=1.12.21-1", "libobjenesis-java=3.3-3",
            "libslf4j-java=1.7.32-1", "libdropwizard-metrics-java=3.2.6-1",
        ),
        files={
            "Report.java": (HERE / "Report.java").read_text(),
            # Of the suite that lists every class, also those that cannot be compiled.
            f"{_JAVA}/server/HATests.java": (
                "package com.rabbitmq.client.test.server;\n"
                "public class HATests { public static final boolean HA_TESTS_RUNNING = false; }\n"
            ),
            **dict.fromkeys(
                ("make", "rabbitmqctl"),
                f"#!{sys.executable}\n{(HERE / 'steered.py').read_text()}",
            ),
        },
        left_out={
            "Metrics": "needs a library (Awaitility) that Debian does not have",
            **dict.fromkeys(
                ("ChannelLimitNegotiation", "LoopbackUsers"),
                "changes RabbitMQ's settings with expressions in Erlang",
            ),
        },
    ),
    Suite(
        "php-amqp", "1.11.0-5", "source",
        "dc5212b4785f59955118a219bbfbcedb7aa6ab2a91e8038a0ad1898f331c2f08",
        "phpt", ("tests/*.phpt",),
    ),
    Suite(
        "amqplib", "1.0.2", "pypi",
        "843d69b681a60afd21fbf50f310404ec67fcdf9d13dfcf6e9d41f3b456217e5b",
        "pytest", ("tests/client_0_8/test_*.py",),
        old_python=("amqplib", "tests"),
        # In place of the settings that read a command line.
        files={
            "tests/client_0_8/settings.py": (
                f"connect_args = {{'host': '127.0.0.1:{PORT}', 'userid': 'guest', "
                "'password': 'guest'}\ntest_args = {'verbosity': 1}\n"
            ),
        },
    ),
    Suite(
        "amqp", "0.0.2", "npm",
        "6256ef50bde6b939ecdd4f7c728409c850ab9501e55d25a2996a69e4ca34ed80",
        "scripts", ("test/test-*.js",),
        files={"today.cjs": (HERE / "node_2010.cjs").read_text()},
        variables={"NODE_OPTIONS": "--no-deprecation --require ./today.cjs"},
        # It settles for no limit on channels, which RabbitMQ has to have offered.
        rabbitmq=("channel_max = 0",),
    ),
    *(
        Suite(
            "txamqp", "0.8.2", "pypi",
            "6447a2c5294876eb58c065fe89342980e09a26959fc71ba7014cb3318941a949",
            "pytest", ("src/txamqp/test/test_*.py",), version,
            needs=("twisted==26.10.0", "six==1.17.0"),
            # By the broker that its tests are for, it chooses the document that it reads.
            variables={"TXAMQP_BROKER": broker},
            specs={
                "specs/standard/amqp0-9.stripped.xml": _QPID_0_9,
                "source/src/specs/standard/amqp0-9.stripped.xml": _QPID_0_9,
                "specs/qpid/amqp.0-8.xml": _QPID_0_8,
                "specs/rabbitmq/amqp0-8.stripped.rabbitmq.xml": _QPID_0_8,
            },
            ours=_OLDER,
        )
        for version, broker in (("0-9", "RABBITMQ"), ("0-8", "QPID"))
    ),
    *(
        Suite(
            "qpid-python", "1.36.0.post1", "pypi",
            "1a341981723a7980163e6d33530f29133433742f6f9b5b12b46d5d239548afee",
            "qpid", tuple(f"qpid_tests.broker_{module}" for module in modules), version,
            ours=_OLDER,
        )
        for version, modules in (("0-8", _QPID_TESTS), ("0-9", (*_QPID_TESTS, *_QPID_TESTS_0_9)))
    ),
)  # fmt: skip

ALONE = (
    Suite(
        "libqpid-proton11-dev-examples", "0.37.0-2", "debian",
        "221f5f89ca6f301d75bf02829b04e23d2769b3f37287a9c2088981935fd60f82",
        "pytest", (f"{_PROTON}/test_examples.py",), "1.0",
        # The examples look for Python where they are; Proton is there for other tests.
        files={f"{_PROTON}/python3": f'#!/bin/sh\nexec {sys.executable} "$@"\n'},
        left_out={"server_direct": "have no broker, and wait half a second for their server"},
    ),
)  # fmt: skip
"""Suites that wait for ever on RabbitMQ 3, which has no dynamic nodes in 1.0: tests of Harebell."""

_OLD_NODE = "depends on the behaviour of old versions of node, not on the broker"
_TYPE = "an unknown exchange type closes the channel (406), as in newer versions of RabbitMQ"
_RACE = (
    "binds on one channel and publishes on another without waiting; Harebell processes a "
    "connection's methods in order, RabbitMQ channel by channel"
)
_PHP = "expects what older versions of PHP print"
_NO_BINDING = "binds to the default exchange, which allows no bindings"

KNOWN: dict[tuple[str, str], str] = {
    ("amqp", "test-buffer"): _OLD_NODE,
    ("amqp", "test-connection-disconnect"): _OLD_NODE,
    ("amqp", "test-connection-timeout"): _OLD_NODE,
    ("amqp", "test-flow"): "sends channel.flow with active=false, which both refuse (540)",
    ("amqp", "test-volume"): (
        "counts messages through a proxy that breaks connections; the result is random"
    ),
    ("aiorabbit", "invalid_exchange_type"): _TYPE,
    ("rabbitmq-java-client", "noAckObeysLimit"): (
        "expects a limit of `basic.qos` for a consumer with no-ack, which the specification ignores"
    ),
    ("rabbitmq-java-client", "rejectLargeFrames"): (
        "expects that 4,096 bytes are too many for a login; 8,192 are allowed, as in RabbitMQ 4.1"
    ),
    ("rabbitmq-java-client", "passiveDeclaration"): (
        "passive declarations need a permission, as in RabbitMQ 4.3"
    ),
    **dict.fromkeys(
        (
            ("rabbitmq-java-client", "PerMessageTTL.expiryWithRequeue"),
            ("rabbitmq-java-client", "PerMessageTTL.trailingCharsUsedInTTL"),
        ),
        "depends on which of two things comes first within 100 ms; the result is random",
    ),
    ("php-amqp", "invalid_type"): _TYPE,
    ("php-amqp", "direct_reply_to"): (
        "expects the form of RabbitMQ's names for replies, which are for the broker alone to read"
    ),
    ("php-amqp", "publish_confirms"): (
        "expects a confirm for each of two messages; those that arrive together can have one"
    ),
    ("php-amqp", "connect_timeout"): "connects to an address outside, which nothing leads to here",
    ("php-amqp", "mandatory_consume"): _PHP,
    ("php-amqp", "bug_62354"): _PHP,
    ("php-amqp", "package-version"): "reads a file of the archive from another directory",
    ("amqpy", "conn_exception"): "malformed fields of a method are 502, in RabbitMQ 501",
    ("aiorabbit", "already_invoked_on_reconnect"): _TYPE,
    ("amqp", "test-unbind"): _RACE,
    ("amqp", "test-queue-bind-headers"): _RACE,
    ("amqp", "test-queue-unbind-headers"): _RACE,
    ("amqp", "test-queue-subscribe-event"): _RACE,
    ("amqp", "test-auto-delete-queue"): "RabbitMQ resets the connection that the client closes",
    ("amqplib", "test_basic_return"): "RabbitMQ refuses the flag immediate of 0-8",
    ("amqplib", "test_exception"): "expects an error when a missing queue is deleted, as in 0-8",
    **dict.fromkeys(
        (("txamqp", "_rabbit"), ("txamqp", "test_default_exchange_rabbit")),
        "expects the reply code of 0-9-1; clients of 0-8 and 0-9 get that of their own "
        "specification",
    ),
    **{
        (name, pattern): why
        for name in ("qpid-python", "txamqp")
        for pattern, why in (
            (
                "rollback",
                "expects messages of a rollback to be redelivered without basic.recover",
            ),
            ("test_purge", "redeclares an exclusive queue as not exclusive: 405 on both"),
        )
    },
    ("qpid-python", "test_message_with_negatives"): (
        "expects values of types that the specification of 0-9 does not have"
    ),
    ("qpid-python", "durable_subscription"): (
        "expects a durable exclusive queue to survive its connection"
    ),
    ("qpid-python", "testDefaultExchangeExplicitBind"): _NO_BINDING,
    ("txamqp", "test_default_exchange"): _NO_BINDING,
    ("txamqp", "test_different_declared_type"): "expects Qpid's 530; the code of 0-8 is 507",
    ("txamqp", "BasicTests.test_get"): (
        "waits for Qpid's recover-ok before it has sent anything in Qpid's layout"
    ),
    (
        "qpid-python",
        "testReservedExchangeNameDisallowed",
    ): "expects 530; a reserved name is 403",
    ("qpid-python", "QueryTests"): "calls methods that are not in the specification it loads",
    ("qpid-python", "test_flow_control"): "needs queues with Qpid's argument x-qpid-capacity",
    ("amqplib", "ipv6"): (
        "Harebell listens on one address, here 127.0.0.1; `--host ::1` selects another"
    ),
}
"""Why tests do not pass on both brokers: by the client and a part of the test's name."""

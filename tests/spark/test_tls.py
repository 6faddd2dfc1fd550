"""Reading and writing over TLS, as a user of one's own, told by options; nothing of it is shown."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.client import blocking
from harebell.spark.schema import message_schema
from harebell.spark.source import QueueSource
from harebell.spark.writing.write_target import SinkError
from tests.interop.client.certificates import SERVER_NAME, make_certificates
from tests.running import RunningBroker, running_broker
from tests.spark.tasks import Query
from tests.spark.test_writer import TEXTS, texts

pytestmark = pytest.mark.timeout(1_200)

SECRET = "hunter2"
QUEUE = "over.tls"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(certificates: Path) -> Iterator[RunningBroker]:
    """A broker of alice's with a TLS listener, that wants its clients' certificates, too."""
    flags = [
        *("--tls-port", "0", "--tls-ca", str(certificates / "stranger.pem")),
        *("--tls-cert", str(certificates / "server.pem")),
        *("--tls-key", str(certificates / "server.key")),
        *("--default-user", "alice"),
    ]
    with running_broker(*flags, env={"HAREBELL_DEFAULT_PASS": SECRET}) as running:
        yield running


@pytest.fixture
def access(broker: RunningBroker, certificates: Path, tmp_path: Path) -> dict[str, str]:
    """The options that lead there."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    url = broker.address("amqps")
    return {
        "url": f"{url}/?server_name_indication={SERVER_NAME}&connection_timeout=60000",
        "vhost": "/",
        "username": "alice",
        "passwordFile": str(secret),
        "cacertfile": str(certificates / "ca.pem"),
        "certfile": str(certificates / "stranger.pem"),
        "keyfile": str(certificates / "stranger.key"),
    }


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_rows_are_written_and_read_over_tls_with_the_same_options(
    broker: RunningBroker, access: dict[str, str], delivery: str
) -> None:
    plain = broker.address().replace("amqp://", f"amqp://alice:{SECRET}@")
    with blocking.connect(plain) as connection:
        connection.channel().declare_queue(QUEUE, durable=True)
    (done,) = Query(access | {"delivery": delivery, "exchange": ""}, TEXTS).run(
        0 if delivery == "exactly-once" else 1, texts(QUEUE, 0, 100)
    )
    assert (done.rows, done.mode) == (100, delivery)
    reader = QueueSource(access | {"queue": QUEUE}).streamReader(message_schema())
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    bodies = [
        int(body)
        for partition in reader.partitions(start, end)
        for batch in pickle.loads(pickle.dumps(reader)).read(partition)
        for body in batch.column(0).to_pylist()
    ]
    assert bodies == list(range(100))
    # Asking for what follows settles them.
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
    reader.stop()


def test_an_authority_that_is_not_trusted_is_an_error_without_the_password(
    access: dict[str, str], certificates: Path
) -> None:
    access["cacertfile"] = str(certificates / "stranger.pem")
    with pytest.raises(SinkError, match=r"the certificate of .* was not accepted") as caught:
        Query(access | {"exchange": ""}, TEXTS).run(0, texts(QUEUE, 0, 1))
    assert SECRET not in str(caught.value)


def test_a_wrong_password_is_an_error_that_does_not_show_it(access: dict[str, str]) -> None:
    del access["passwordFile"]
    access["password"] = "sesame"
    # Not tried again, though the query has been there before: it would not help.
    with pytest.raises(SinkError, match=r"(?i)refused|ACCESS_REFUSED") as caught:
        Query(access | {"exchange": ""}, TEXTS).run(7, texts(QUEUE, 0, 1))
    assert "sesame" not in str(caught.value)


def test_a_file_of_tls_that_is_missing_is_named(access: dict[str, str], tmp_path: Path) -> None:
    access["certfile"] = str(tmp_path / "missing.pem")
    with pytest.raises(SinkError, match=r"the TLS files .*missing\.pem.* cannot be used"):
        Query(access | {"exchange": ""}, TEXTS).run(0, texts(QUEUE, 0, 1))

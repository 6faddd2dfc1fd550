"""The next broker is there before a test asks for it, and nobody has used it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from harebell.client.blocking import connect
from harebell.testing.running import DidNotStart, RunningBroker
from harebell.testing.spares import Spares
from tests.patience import eventually


@pytest.fixture
def spares() -> Iterator[Spares]:
    made = Spares()
    yield made
    made.close()


def _pid_of_the_spare(spares: Spares) -> int:
    assert spares._spare is not None
    broker = spares._spare.broker()
    assert broker is not None
    return broker.pid


def test_the_spare_is_what_the_next_test_gets(spares: Spares) -> None:
    with spares.take({}) as first:
        with connect(first.url) as link:
            link.channel().declare_queue("left", durable=True)
        expected = _pid_of_the_spare(spares)
    begun = time.monotonic()
    with spares.take({}) as second:
        taken = time.monotonic() - begun
        assert second.pid == expected
        assert second.data_dir != first.data_dir
        with connect(second.url) as link, pytest.raises(Exception, match="no queue 'left'"):
            link.channel().declare_queue("left", passive=True)
    assert taken < 60


def test_a_test_with_other_settings_gets_them(spares: Spares) -> None:
    with spares.take({}):
        spare = _pid_of_the_spare(spares)
    with spares.take({"heartbeat": 7}) as broker:
        assert broker.pid != spare
        with connect(broker.url) as link:
            assert link.heartbeat == 7


def test_a_spare_of_another_environment_is_not_used(
    spares: Spares, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spares.take({}):
        spare = _pid_of_the_spare(spares)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with spares.take({}) as broker:
        assert broker.pid != spare


def test_a_spare_that_has_ended_is_replaced(spares: Spares) -> None:
    with spares.take({}):
        assert spares._spare is not None
        spare = spares._spare.broker()
        assert isinstance(spare, RunningBroker)
        spare.process.kill()
        spare.process.wait()
    with spares.take({}) as broker:
        assert broker.process.poll() is None


def test_a_broker_that_does_not_start_says_why(spares: Spares) -> None:
    for _ in range(2):
        with pytest.raises(DidNotStart, match="heartbeat"):
            spares.take({"heartbeat": "often"})
    assert spares._spare is None


def test_no_spare_is_left_at_the_end() -> None:
    spares = Spares()
    with spares.take({}):
        spare = spares._spare
        assert spare is not None
        broker = spare.broker()
        assert broker is not None
    spares.close()
    assert eventually(lambda: broker.process.poll() is not None)
    assert not broker.data_dir.exists()


def test_no_spare_is_made_for_settings_that_two_brokers_cannot_share(
    spares: Spares, tmp_path: object
) -> None:
    with spares.take({"data_dir": f"{tmp_path}/data"}):
        assert spares._spare is None

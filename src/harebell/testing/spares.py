"""A broker that is started before the next test asks for it.

    test 1   start ---- ready | runs ......... stop
    spare                     | start ---- ready
    test 2                                      | takes it: no time | runs ...
    spare                                                           | start ---- ready

Each test gets a broker of its own, which was not used. The spare has the settings of the last
test; a test with other settings or another environment starts a broker of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from harebell.base.errors import HarebellError
from harebell.testing.running import RunningBroker, environment

_FIXED = ("data_dir", "port", "management_port", "metrics_port", "tls_port", "listen", "log_file")
"""Settings that two brokers at a time must not share."""


class _Start:
    """A broker that starts in the background.

    Args:
        settings: configuration keys with their values.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        self.environment = environment()
        self._broker: RunningBroker | None = None
        self._thread = threading.Thread(target=self._run, name="spare broker", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._broker = RunningBroker(**self.settings)
        except (HarebellError, OSError):
            # The test that takes the spare starts another broker, and gets the reason.
            self._broker = None

    def broker(self) -> RunningBroker | None:
        """Wait until the broker is ready; None if it failed to start or has ended."""
        self._thread.join()
        broker = self._broker
        if broker is not None and broker.process.poll() is not None:
            broker.remove()
            return None
        return broker


class Spares:
    """Gives each test a broker, and has the next one ready."""

    def __init__(self) -> None:
        self._spare: _Start | None = None

    def take(self, settings: Mapping[str, Any]) -> RunningBroker:
        """Return a broker that was not used, which the caller stops.

        Raises:
            DidNotStart: it ended before it was ready; its log is the text.
        """
        spare, self._spare = self._spare, None
        broker = None
        if spare is not None:
            same = spare.settings == settings and spare.environment == environment()
            broker = spare.broker()
            if not same and broker is not None:
                _drop(broker)
                broker = None
        broker = broker or RunningBroker(**settings)
        if not any(name in settings for name in _FIXED):
            self._spare = _Start(settings)
        return broker

    def close(self) -> None:
        """End the spare broker."""
        spare, self._spare = self._spare, None
        broker = None if spare is None else spare.broker()
        if broker is not None:
            _drop(broker)


def _drop(broker: RunningBroker) -> None:
    """End a broker that was not used, and remove its files."""
    broker.kill()
    broker.remove()

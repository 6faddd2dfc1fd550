"""How a driver of pipelines ends: the first Ctrl-C lets micro-batches end, the second does not."""

from __future__ import annotations

import logging
import os
import signal

import pytest

from harebell.pipeline import hosting
from harebell.pipeline.hosting import _signals


def test_the_second_ctrl_c_ends_at_once_and_keeps_libraries_from_logging_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.getsignal(signal.SIGINT)
    # What PySpark installs: it calls the JVM, within the call that is interrupted.
    signal.signal(signal.SIGINT, lambda *_: pytest.fail("the handler of PySpark was called"))
    try:
        with _signals() as stopping:
            os.kill(os.getpid(), signal.SIGINT)
            assert stopping.is_set()
            # Once more in the same moment, as `timeout` does, is no second one.
            monkeypatch.setattr(hosting, "PIPELINE_SAME_SIGNAL_SECONDS", 3600.0)
            os.kill(os.getpid(), signal.SIGINT)
            monkeypatch.setattr(hosting, "PIPELINE_SAME_SIGNAL_SECONDS", 0.0)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert not logging.getLogger().isEnabledFor(logging.CRITICAL)
    finally:
        logging.disable(logging.NOTSET)
        signal.signal(signal.SIGINT, before)

"""Loggers of Harebell are as in a new process, whatever other tests of this one did to them.

A session of Spark, a configuration of logging and the end of a driver disable loggers, and a test
that reads the log of a client or a source would see nothing of it.
"""

from __future__ import annotations

import logging

import pytest

NAME = "harebell"


@pytest.fixture(autouse=True)
def heard() -> None:
    """Undo levels, switches and directions that other tests left behind."""
    logging.disable(logging.NOTSET)
    logging.getLogger().setLevel(logging.WARNING)
    for name in [NAME, *logging.root.manager.loggerDict]:
        if name == NAME or name.startswith(f"{NAME}."):
            logger = logging.getLogger(name)
            logger.disabled = False
            logger.propagate = True
            logger.setLevel(logging.NOTSET)

"""A test beside RabbitMQ has longer: on a busy machine `rabbitmqctl` alone takes a minute."""

from __future__ import annotations

import pytest

_SECONDS = 1_200


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of a module that starts a node of RabbitMQ more time."""
    for item in items:
        module = getattr(item, "module", None)
        beside = hasattr(module, "RabbitNode") or "rabbit" in getattr(item, "fixturenames", ())
        if beside and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_SECONDS))

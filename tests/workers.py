"""Which tests run beside each other when there are several workers.

With `--dist loadfile` a file stays with one worker. What is dear to start, such as a RabbitMQ
node, or to make, such as the trees of all sources, is shared by several files: they are a room, and
a room stays with one worker too. The first
room that names a file is its own; a file that takes a minute and shares nothing is one too. Rooms
begin first, for nothing that is long should begin when everything else is done.

Of the tests of Spark two run at a time, and beside them only what takes the time that they leave
over, because Spark gives the Python processes that it starts ten seconds to answer, whatever else
the machine has to do. The examples of
the documentation begin before them: they end the session that they have started, as a reader would,
and where it is that of the tests, these would have none. Then comes what kills for minutes.
"""

from __future__ import annotations

from typing import Any

import pytest

ROOMS = (
    ("tests/compat/test_beside_rabbitmq.py",),
    ("tests/interop/client",),
    ("tests/browser",),
    ("tests/docs/test_examples.py",),
    ("tests/spark/test_chaos.py",),
    ("tests/interop/differential/test_mistakes.py",),
    ("tests/interop/differential",),
    ("tests/packaging/test_deb.py",),
    ("tests/interop/qpid",),
    ("tests/interop/clients/test_celery.py",),
    ("tests/interop/test_rabbitmqadmin.py",),
    ("tests/tidy",),
)


def room_of(path: str) -> int:
    """The number of a file's room; one more than the last for files that have none."""
    for number, places in enumerate(ROOMS):
        if any(path == place or path.startswith(f"{place}/") for place in places):
            return number
    return len(ROOMS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Rooms first, where there are workers."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: room_of(item.nodeid.partition("::")[0]))


def pytest_configure(config: pytest.Config) -> None:
    """Schedule by rooms, where there are workers to be given files."""
    if config.getoption("dist", "no") == "loadfile" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Rooms(), "rooms")


class _Rooms:
    """The hook of pytest-xdist; it is unknown where that is not in use."""

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Files to workers, but all files of a room to the same one."""
        from xdist.scheduler import LoadFileScheduling

        class RoomScheduling(LoadFileScheduling):  # type: ignore[misc]
            """Hands out rooms, and then files, in the order they were collected in."""

            def _split_scope(self, nodeid: str) -> str:
                file = nodeid.partition("::")[0]
                number = room_of(file)
                return f"room {number}" if number < len(ROOMS) else file

        config.option.loadscopereorder = False
        return RoomScheduling(config, log)

"""Commands that are asked of a broker that stands by: an owner runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.admin.context import missing
from harebell.base.errors import HarebellError
from harebell.server.cluster.command_caller import CommandCaller, RemoteRows
from harebell.server.control.client import AWAY

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.server.cluster.cluster_directory import ClusterDirectory


class CommandsFromStandby:
    """Sends commands to an owner.

    Nothing is read from the database before the first command: most standbys get none.

    Args:
        make: returns the directory of the cluster, which is not started yet.
    """

    def __init__(self, make: Callable[[], ClusterDirectory]) -> None:
        self._make = make
        self._directory: ClusterDirectory | None = None
        self._caller: CommandCaller | None = None

    def close(self) -> None:
        """Read no more from the database."""
        if self._caller is not None:
            self._caller.close()
        if self._directory is not None:
            self._directory.close()

    async def serve(self, command: Command, fields: dict[str, Any]) -> dict[str, Any]:
        """Let an owner run a command; returns the fields of its answer."""
        try:
            store = await self._serving()
            if self._caller is None:
                self._caller = CommandCaller(await self._known())
            away: list[int] = []
            answer = await self._caller.run(
                store, command, fields, None, reads=False, places=True, away=away
            )
        except HarebellError as error:
            return {"ok": False, "error": str(error)}
        if isinstance(answer, RemoteRows):
            return {"ok": True, "rows": answer}
        return {"ok": True, "answer": answer, **({AWAY: away} if away else {})}

    async def _known(self) -> ClusterDirectory:
        if self._directory is None:
            directory = self._make()
            await directory.start()
            self._directory = directory
        return self._directory

    async def _serving(self) -> int:
        """Return a store whose owner serves, the first one if it does.

        Raises:
            CommandRefused: there is none.
        """
        directory = await self._known()
        for store, owner in sorted(directory.view.owners.items()):
            if owner.serves:
                return store
        raise missing("this broker stands by, and no broker serves clients now")

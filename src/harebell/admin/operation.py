"""What commands do to the process of a broker as a whole; the server does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.auth.users import User


class Operation(Protocol):
    """Opens and closes the service of clients, and changes keys of the configuration.

    A future is done when the work is; it raises a `HarebellError` if that failed.
    """

    def suspend(self) -> Future[None]:
        """Close the AMQP listeners; connections stay."""

    def resume(self) -> Future[None]:
        """Open the AMQP listeners again, at the addresses that they had."""

    def stop(self) -> Future[None]:
        """Close all listeners but that of metrics and probes, and every connection."""

    def start(self) -> Future[None]:
        """Open what `stop` has closed."""

    def reset(self) -> Future[None]:
        """Remove everything that is stored; the broker has to be stopped."""

    def check_store(self, store: int) -> None:
        """Refuse a number of a store that is not that of this process.

        Raises:
            CommandRefused: it is another one.
        """

    def hand_over(self, successor: str, store: int) -> None:
        """Give the store of this process to the broker of this name, and stand by.

        Args:
            successor: the name.
            store: the number of the store, which has to be that of this process.
        """

    def drain(self, store: int | None) -> Future[None]:
        """Give the stores that this machine owns to others, or one of them."""

    def set_key(self, key: str, value: str) -> dict[str, Any]:
        """Give a key of the configuration another value until a restart or a reload."""

    def unset_key(self, key: str) -> dict[str, Any]:
        """Give a key the value again that the configuration has for it."""

    def reopen_logs(self) -> None:
        """Open the log files anew by their names."""


class Questions(Protocol):
    """Answers SQL of users, each question in a process of its own."""

    def ask(self, user: User, vhost: str, question: dict[str, Any]) -> Future[bytes]:
        """Begin to answer a question; return its answer, as JSON.

        Args:
            user: who asks, with whose rights queues are read.
            vhost: of the queues.
            question: has "id", "statement" and "rows".

        Raises:
            CommandRefused: too many are being answered.
        """

    def cancel(self, user: str, number: str) -> bool:
        """End a question of a user; False if there is none of that id."""


class Schemas(Protocol):
    """Reads the schemas of messages from a registry."""

    def ask(self, user: str, number: int) -> Future[dict[str, Any]]:
        """Begin to read the schema with an id; return a row with it, or with what is wrong.

        Args:
            user: who asks.
            number: the id.

        Raises:
            CommandRefused: too many are being read.
        """


class Backups(Protocol):
    """Makes backups of the broker. Its errors are `StoreError`s with a sentence for the user."""

    def start(self, place: str, keep: int, rate: int) -> dict[str, Any]:
        """Start a backup to a path or address; return its row."""

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each backup since the start, the last ones if they are many."""

    def cancel(self) -> None:
        """End the backup that is being made."""


class Audit(Protocol):
    """Writes administrative acts to the audit trail: see `harebell.admin.audit`."""

    def recorded(
        self,
        run: Callable[..., Any],
        command: Any,
        context: Any,
        arguments: dict[str, Any],
        away: list[int],
    ) -> Slices[Any]:
        """Run a command, and write a line for it."""

    def refused(
        self, command: Any, context: Any, arguments: Mapping[str, Any], reason: str
    ) -> None:
        """Write a line for a command that was refused."""

    def search(
        self, user: str, before: int, wanted: bytes
    ) -> AbstractContextManager[Iterator[dict[str, Any] | None]]:
        """Return the lines before a number, the newest first, and None between two blocks."""

"""Commands that stop, start and reset a broker, and suspend its listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.admin.catalog import APP, LISTENERS
from harebell.admin.command import ADMINISTRATOR, Row
from harebell.admin.context import AdminContext, CommandRefused
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from concurrent.futures import Future


def _local(context: AdminContext, what: str) -> None:
    """Refuse what closes the HTTP API when it was asked for over the HTTP API.

    Raises:
        CommandRefused: there is a user: the command came over HTTP.
    """
    if context.actor is not None:
        raise CommandRefused(
            f"{what} also closes the HTTP API: run the command on the machine of the broker"
        )


@LISTENERS.command(tag=ADMINISTRATOR, done="clients cannot connect any more; connections stay")
def suspend(context: AdminContext) -> Slices[Row]:
    """Close the ports for AMQP until they are resumed or the broker restarts."""
    yield from finished(context.operation.suspend())
    return {}


@LISTENERS.command(tag=ADMINISTRATOR, done="clients can connect again")
def resume(context: AdminContext) -> Slices[Row]:
    """Open the ports for AMQP again."""
    yield from finished(context.operation.resume())
    return {}


@APP.command(tag=ADMINISTRATOR, done="the broker is stopped; its process still answers here")
def stop(context: AdminContext) -> Slices[Row]:
    """Close every port and connection, but not the process, until `harebell app start`.

    What is stored stays. The port of metrics and probes stays open, and says that the broker is
    not ready. A restart of the process starts the broker, too.
    """
    _local(context, "a stop")
    yield from finished(context.operation.stop())
    return {}


@APP.command(tag=ADMINISTRATOR, done="the broker is started")
def start(context: AdminContext) -> Slices[Row]:
    """Open what `harebell app stop` has closed."""
    yield from finished(context.operation.start())
    return {}


@APP.command(tag=ADMINISTRATOR, done="everything is removed; the broker is stopped")
def reset(context: AdminContext) -> Slices[Row]:
    """Remove everything that is stored: messages, queues, users, vhosts and settings.

    The broker has to be stopped. It is then as new: it makes its default user, and loads the
    definitions of its configuration. `harebell app start` starts it.
    """
    _local(context, "a reset")
    yield from finished(context.operation.reset())
    return {}


def finished(work: Future[None]) -> Slices[None]:
    """Wait for a future.

    Raises:
        CommandRefused: it failed.
    """
    from harebell.base.errors import HarebellError

    yield work
    try:
        work.result()
    except HarebellError as error:
        raise CommandRefused(str(error)) from None

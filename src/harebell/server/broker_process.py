"""The process of a broker: it waits for its store, starts the broker, and ends or begins anew.

own the store -> App.start -> serve clients until a signal -> App.stop -> end
(or stand by)        ^                                          |    |
^               +------ reset: another App, without data --+    |
+------ store given away or lost: the process begins anew ------+
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from harebell.base import impl
from harebell.base.errors import HarebellError
from harebell.base.heap import keep_heap
from harebell.cluster.stores import DIRECTORY, number_of
from harebell.config import Config, Configuration
from harebell.server import limits
from harebell.server.app import App, ReadConfig, node_name
from harebell.server.disk.erasure import erase
from harebell.server.file_limits import ask_for_more
from harebell.server.logs.logger import Logger
from harebell.server.memory_tuning import bound_collections
from harebell.server.net.handed_sockets import (
    Claimed,
    EndedAsStandby,
    HandedSockets,
    inherited,
    kept,
)
from harebell.server.net.tls import StartError
from harebell.server.service_manager import ServiceManager


async def _own_store(
    config: Config, logger: Logger, manager: ServiceManager, say: Callable[[str], None]
) -> Claimed:
    """Wait until this broker owns its store; at once for a store in the data directory.

    Raises:
        EndedAsStandby: it was told to end before.
        StoreError: the data directory has another number of stores.
    """
    number = number_of(os.environ)
    if not config.storage and config.storage_stores > 1:
        # Imported only if it is used: most brokers have one store.
        from harebell.cluster.workers.worker import Worker

        worker = Worker(config, number, node_name(config))
        return Claimed(handed=inherited(os.environ), worker=worker)
    if not config.storage:
        own = config.data_dir.resolve()
        if (own / DIRECTORY).exists() or own.parent.name == DIRECTORY:
            # Imported only if it is used: most directories have one store.
            from harebell.cluster.workers.layout import begin_as_one, check_whole

            check_whole(own)
            begin_as_one(config.data_dir)
        return Claimed()
    # Imported only if it is used: it loads the driver of PostgreSQL.
    from harebell.cluster.postgresql.standby_service import StandbyService

    return await StandbyService(config, node_name(config), number, manager, logger.write, say).own()


async def _serve(
    configuration: Configuration,
    ready: Callable[[App], None],
    again: ReadConfig | None,
    say: Callable[[str], None],
) -> int:
    ask_for_more()
    manager = ServiceManager(os.environ, os.getpid())
    logger = _open_log(configuration)
    try:
        app = await _start(configuration.config, logger, manager, again, say)
        # After the start: queues and users that it read live on, and no collection visits them.
        bound_collections()
        keep_heap(limits.HEAP_LOAD_BYTES)
        # Warnings of the start must appear before the line "Server startup complete".
        logger.drain(limits.LOG_DRAIN_SECONDS)
        ready(app)
        # What are plugins of RabbitMQ: management and the metrics for Prometheus.
        plugins = bool(app.http_listeners) + bool(app.metrics_listeners)
        logger.write("info", f"Server startup complete; {plugins} plugins started.")
        app.report_ready()
        await _run(app, logger, manager)
    except EndedAsStandby:
        logger.write("info", "this broker stood by, and ends")
    finally:
        manager.close()
        logger.close()
    return 0


def _open_log(configuration: Configuration) -> Logger:
    """Return the logger, which has the lines about the start already."""
    config = configuration.config
    logger = Logger(config, node_name(config))
    uncompiled = impl.warning()
    if uncompiled is not None:
        logger.write("warning", uncompiled)
    for file in configuration.files:
        logger.write("info", f"configuration file {file}")
    for sentence in configuration.warnings:
        logger.write("warning", sentence)
    return logger


async def _start(
    config: Config,
    logger: Logger,
    manager: ServiceManager,
    again: ReadConfig | None,
    say: Callable[[str], None],
) -> App:
    """Return the broker when it owns its store and serves clients.

    Raises:
        EndedAsStandby: it was told to end before.
        HarebellError: it cannot start; the store was given back.
    """
    owned, handed, was_ended, worker = await _own_store(config, logger, manager, say)
    try:
        app = App(config, logger, owned=owned, worker=worker)
        app.again = again
        await app.start(handed)
    except HarebellError:
        if owned is not None and not owned.ownership.holds():
            why = owned.ownership.lost or "its lease is over"
            logger.write("error", f"the store was lost at once: {why}")
            logger.close()
            _stand_by(handed)
        handed.close()
        if owned is not None:
            owned.ownership.end(release=True)
        raise
    app.obey(manager)
    if was_ended():
        app.end()
    return app


async def _run(app: App, logger: Logger, manager: ServiceManager) -> None:
    """Serve clients until the broker ends; a reset goes on with a new broker, without data."""
    handed = HandedSockets()
    await app.wait()
    if app.service.successor is not None:
        handed = kept(app.listeners, app.http_listeners)
    await app.stop()
    if app.service.successor is not None:
        logger.close()
        _stand_by(handed)
    while (resetting := app.service.resetting) is not None:
        erase(app.config.data_dir)
        again = app.again
        app = App(app.config, logger, app.service.closed)
        app.again = again
        await app.start()
        app.obey(manager)
        app.report_ready()
        resetting.set_result(None)
        await app.wait()
        await app.stop()


def _stand_by(handed: HandedSockets) -> None:
    """Start again as a standby, after the store was given to another broker."""
    # Imported only if it is used: it loads the driver of PostgreSQL.
    from harebell.cluster.postgresql.step_down import restart_process

    restart_process(handed)


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the factory of the event loop: uvloop if installed, unless configured otherwise."""
    if name == "asyncio":
        return asyncio.new_event_loop
    try:
        import uvloop
    except ImportError:
        if name == "uvloop":
            raise StartError(
                "loop is 'uvloop', which is not installed: pip install uvloop"
            ) from None
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def run(
    configuration: Configuration,
    ready: Callable[[App], None] = lambda app: None,
    again: ReadConfig | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> int:
    """Run a broker until SIGTERM or SIGINT, and return the exit code.

    Args:
        configuration: the configuration, and where it comes from.
        ready: called once, when every address accepts connections.
        again: reads the configuration anew, for a reload.
        say: called with the lines of a broker that stands by.

    Raises:
        StartError: the broker cannot start; the text is for the user.
    """
    with asyncio.Runner(loop_factory=_loop_factory(configuration.config.loop)) as runner:
        return runner.run(_serve(configuration, ready, again, say))

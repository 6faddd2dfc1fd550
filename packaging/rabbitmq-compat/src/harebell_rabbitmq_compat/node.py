"""Find the broker that a verb is for, and send commands to it over its control socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harebell_rabbitmq_compat.exits import CONFIG, UNAVAILABLE, VerbFailed

DATA_DIR_VARIABLE = "HAREBELL_DATA_DIR"
_USUAL_NAME = "rabbit"
"""The name that RabbitMQ's tools use for the node of this machine."""


class CommandRefused(Exception):
    """The broker refused a command; the text is its reason."""


class Node:
    """The broker of a data directory.

    Args:
        flags: the flags of the command line; `data-dir` and `node` say which broker.
    """

    def __init__(self, flags: Mapping[str, Any]) -> None:
        self._flags = flags
        self._asked: str | None = flags.get("node") or os.environ.get("RABBITMQ_NODENAME")
        self._overview: dict[str, Any] | None = None

    @property
    def wanted(self) -> str:
        """The name of the node as the user gave it, or the usual name."""
        if self._asked is None or "/" in self._asked:
            return f"harebell@{socket.gethostname().partition('.')[0]}"
        return self._asked if "@" in self._asked else f"{self._asked}@{socket.gethostname()}"

    @property
    def name(self) -> str:
        """The name of the running broker; of the wanted one if none runs."""
        try:
            return str(self.overview()["node"])
        except VerbFailed:
            return self.wanted

    def data_dir(self) -> Path:
        """Return the data directory.

        Raises:
            VerbFailed: the configuration that names it is invalid.
        """
        given = self._flags.get("data-dir")
        if given is None and self._asked is not None and "/" in self._asked:
            given = self._asked
        given = given or os.environ.get(DATA_DIR_VARIABLE)
        if given:
            return Path(given)
        # Imported here: the configuration takes longer than everything else of a verb.
        from harebell.config import ConfigError, load

        try:
            return load({}).data_dir
        except ConfigError as error:
            raise VerbFailed(str(error), CONFIG) from None

    def overview(self, patience: float | None = None, *, again: bool = False) -> dict[str, Any]:
        """Return the figures of the broker, and check that it is the wanted one.

        Args:
            patience: seconds to wait; None for the timeout of the command line.
            again: ask also if they are known.

        Raises:
            VerbFailed: no broker answers, or another one than the wanted.
        """
        from harebell.management.control.client import ControlError, ask_overview

        if self._overview is None or again:
            seconds = self._flags.get("timeout") if patience is None else patience
            try:
                overview = ask_overview(self.data_dir(), seconds or 30.0)
            except ControlError as error:
                raise self._unreachable(str(error)) from None
            if not self._is_wanted(overview["node"]):
                raise self._unreachable(
                    f"the broker on {overview['data_dir']} is {overview['node']}: leave --node "
                    "out, or name its data directory with --data-dir"
                )
            self._overview = overview
        return self._overview

    def _is_wanted(self, name: str) -> bool:
        """Whether a broker of that name is meant by `--node`."""
        asked = self._asked
        if asked is None or "/" in asked or asked == name:
            return True
        asked_name, _, host = asked.partition("@")
        own_name, _, own_host = name.partition("@")
        hosts = {"", "localhost", own_host, socket.gethostname(), socket.getfqdn()}
        return asked_name in {own_name, _USUAL_NAME} and host in hosts

    def _unreachable(self, reason: str) -> VerbFailed:
        return VerbFailed(
            f"Error: unable to perform an operation on node '{self.wanted}'. Please see "
            "diagnostics information and suggestions below.\n\n"
            "Most common reasons for this are:\n\n"
            " * Target node is not running\n"
            " * The broker uses another data directory: name it with --data-dir or "
            f"{DATA_DIR_VARIABLE}\n"
            " * The broker belongs to another user: use the tool as that user or as root\n\n"
            f"DIAGNOSTICS\n===========\n\n{reason}",
            UNAVAILABLE,
            heading="",
        )

    def ask(self, command: str, patience: float | None = None, **given: Any) -> Any:
        """Run a command of the broker and return its answer.

        Args:
            command: its name, such as "queues.purge".
            patience: seconds to wait; None for the timeout of the command line.
            **given: its arguments.

        Raises:
            CommandRefused: the broker refused it.
            VerbFailed: no broker answers.
        """
        from harebell.management.control.client import CommandError, ControlError, ask_command

        if self._asked is not None:
            self.overview()
        seconds = patience or self._flags.get("timeout") or 60.0
        try:
            return ask_command(self.data_dir(), command, given, seconds)
        except CommandError as error:
            raise CommandRefused(error.reason) from None
        except ControlError as error:
            raise self._unreachable(str(error)) from None

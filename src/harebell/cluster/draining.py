"""Give the stores that the processes of this machine own to other machines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.admin.context import CommandRefused
from harebell.cluster.stores import FIRST_STORE, data_dir_of
from harebell.management.control.client import ControlError, ask_command, ask_overview
from harebell.server.limits import CONTROL_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from harebell.config import Config

_OWNER = "running"
DRAIN = "cluster.drain"
"""The command that each process is asked to run for its own store."""


async def drain(
    config: Config, own: int, store: int | None, give_own: Callable[[], None] | None
) -> int:
    """Give the stores of this machine to others; this process comes last.

    Args:
        config: the configuration of this process.
        own: the store of this process.
        store: the only store that is given away; None for all.
        give_own: gives the store of this process away; None if it does not own it.

    Returns:
        How many stores are given away.

    Raises:
        CommandRefused: a store stays; the text says which, and why.
    """
    every = range(FIRST_STORE, FIRST_STORE + config.storage_stores)
    numbers = every if store is None else (store,)
    if store is not None and not every[0] <= store <= every[-1]:
        raise CommandRefused(f"there is no store {store}: the cluster has {len(every)}")
    refused: list[str] = []
    given = 0
    for number in numbers:
        if number == own:
            continue
        data_dir = data_dir_of(config.data_dir, own, number)
        try:
            overview = await asyncio.to_thread(ask_overview, data_dir, CONTROL_TIMEOUT_SECONDS)
            if store is None and overview["state"] != _OWNER:
                continue
            await asyncio.to_thread(ask_command, data_dir, DRAIN, {"store": number})
            given += 1
        except ControlError as error:
            refused.append(f"store {number}: {error}")
    # Last: the client that has asked may be connected to this process, which begins anew then.
    if own in numbers and give_own is not None:
        try:
            give_own()
            given += 1
        except CommandRefused as error:
            if len(numbers) == 1:
                raise
            refused.append(f"store {own}: {error}")
    if refused:
        raise CommandRefused("; ".join(refused))
    return given

"""Commands for the configuration of a running broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.admin.catalog import CONFIG
from harebell.admin.command import ADMINISTRATOR, Row, plural
from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.place import FULLEST, WORKERS


def _done(outcome: Mapping[str, Any]) -> str:
    changed, kept = outcome["changed"], outcome["restart_needed"]
    text = f"{plural(len(changed), 'key')} changed"
    if changed:
        text += f": {', '.join(changed)}"
    if kept:
        text += f"; changed only by a restart: {', '.join(kept)}"
    return text


@CONFIG.over_http("GET /api/config/effective", tag=ADMINISTRATOR, place=WORKERS, merge=FULLEST)
def effective(context: AdminContext) -> Row:
    """Return the value of every key of the configuration; secrets are masked."""
    return context.configuration()


@CONFIG.command(
    "POST /api/config/reload", tag=ADMINISTRATOR, done=_done, place=WORKERS, merge=FULLEST
)
def reload(context: AdminContext) -> Row:
    """Read the configuration again, and apply what a running broker can change.

    A configuration with an error changes nothing.
    """
    from harebell.base.errors import HarebellError

    if context.reload is None:
        raise CommandRefused("this broker has no configuration to read again")
    try:
        return context.reload()
    except HarebellError as error:
        raise CommandRefused(f"{error}; the configuration stays as it is") from None


@CONFIG.command(
    verb="set",
    tag=ADMINISTRATOR,
    done="{key} is {value} until a restart or a reload",
    place=WORKERS,
    merge=FULLEST,
)
def set_key(context: AdminContext, key: str, value: str) -> Row:
    """Give KEY another value in the running broker, until a restart or a reload.

    VALUE is written as in an environment variable. Only keys that a reload can change are changed.
    """
    from harebell.base.errors import HarebellError

    try:
        return context.operation.set_key(key, value)
    except CommandRefused:
        raise
    except HarebellError as error:
        raise CommandRefused(str(error)) from None


@CONFIG.command(
    verb="unset",
    tag=ADMINISTRATOR,
    done="{key} is {value}, as it is configured",
    place=WORKERS,
    merge=FULLEST,
)
def unset_key(context: AdminContext, key: str) -> Row:
    """Give KEY the value again that the configuration has for it, after `config set`."""
    from harebell.base.errors import HarebellError

    try:
        return context.operation.unset_key(key)
    except CommandRefused:
        raise
    except HarebellError as error:
        raise CommandRefused(str(error)) from None

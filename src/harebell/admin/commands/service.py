"""Commands of the HTTP API that the command line has no use for."""

from __future__ import annotations

from harebell.admin.catalog import SERVICE
from harebell.admin.command import ADMINISTRATOR, ANYBODY, Row
from harebell.admin.context import AdminContext


@SERVICE.command("GET /api/whoami", tag=ANYBODY)
def whoami(context: AdminContext) -> Row:
    """Return the user of the request."""
    actor = context.actor
    if actor is None:
        return {"name": "", "tags": []}
    return {"name": actor.name, "tags": list(actor.tags)}


@SERVICE.command("GET /api/auth/attempts/{node}", tag=ADMINISTRATOR)
def login_attempts(context: AdminContext, node: str) -> list[Row]:
    """Return the counts of logins by protocol."""
    context.check_node(node)
    return context.login_attempts.by_protocol()


@SERVICE.command("DELETE /api/auth/attempts/{node}", tag=ADMINISTRATOR)
def reset_login_attempts(context: AdminContext, node: str) -> Row:
    """Set the counts of logins to 0."""
    return _reset(context, node)


@SERVICE.command("GET /api/auth/attempts/{node}/source", tag=ADMINISTRATOR)
def login_attempts_by_source(context: AdminContext, node: str) -> list[Row]:
    """Return the counts of logins by address and user."""
    context.check_node(node)
    return context.login_attempts.by_source()


@SERVICE.command("DELETE /api/auth/attempts/{node}/source", tag=ADMINISTRATOR)
def reset_login_attempts_by_source(context: AdminContext, node: str) -> Row:
    """Set the counts of logins to 0."""
    return _reset(context, node)


def _reset(context: AdminContext, node: str) -> Row:
    context.check_node(node)
    context.login_attempts.clear()
    return {}

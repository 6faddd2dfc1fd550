"""The command for a schema of the registry that the operator has configured."""

from __future__ import annotations

from harebell.admin.catalog import SCHEMAS
from harebell.admin.command import MANAGEMENT, Row
from harebell.admin.context import AdminContext, WrongArgument
from harebell.base.slices import Slices

_LAST = 2**32 - 1
"""The largest id: a message has it in four bytes."""


@SCHEMAS.over_http("GET /api/schemas/{id}", tag=MANAGEMENT)
def show(context: AdminContext, id_: int) -> Slices[Row]:
    """Show a schema of the registry, with its type; without `management_schema_registry` neither.

    What is wrong with the registry, or its answer, is in `problem`.
    """
    if not 0 <= id_ <= _LAST:
        raise WrongArgument(f"id is {id_}: it is 0 to {_LAST}")
    return _shown(context, id_)


def _shown(context: AdminContext, number: int) -> Slices[Row]:
    answer = context.schemas().ask("" if context.actor is None else context.actor.name, number)
    while not answer.done():
        yield answer
    return answer.result()

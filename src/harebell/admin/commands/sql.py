"""Commands for questions in SQL, which a process of its own answers with the rights of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import InVhost
from harebell.admin.catalog import SQL
from harebell.admin.command import MANAGEMENT, Argument, Row
from harebell.admin.context import AdminContext, CommandRefused, WrongArgument, missing
from harebell.admin.limits import SQL_ROWS, SQL_STATEMENT_BYTES
from harebell.admin.place import ANYWHERE
from harebell.base.errors import ErrorKind
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.auth.users import User

_ID_CHARACTERS = 64

QuestionId = Annotated[str, Argument("What cancels it, chosen by who asks.", "ID")]


@SQL.over_http("POST /api/sql/{vhost}/{id}", tag=MANAGEMENT, status=200)
def ask(
    context: AdminContext,
    statement: str,
    id_: QuestionId,
    vhost: InVhost = "/",
    rows: Annotated[int, Argument("Most rows of the answer.")] = SQL_ROWS,
) -> Slices[Row]:
    """Ask the queues of a vhost with a SELECT, which takes nothing from them."""
    user = _asking(context)
    if not 0 < len(id_) <= _ID_CHARACTERS:
        raise WrongArgument(f"id has {len(id_)} characters: it has 1 to {_ID_CHARACTERS}")
    size = len(statement.encode(errors="surrogatepass"))
    if size > SQL_STATEMENT_BYTES:
        raise WrongArgument(
            f"statement has {size} bytes, at most {SQL_STATEMENT_BYTES} are allowed"
        )
    if not 1 <= rows <= SQL_ROWS:
        raise WrongArgument(f"rows is {rows}: it is 1 to {SQL_ROWS}")
    if vhost not in context.broker.vhosts or not user.opens(vhost):
        raise CommandRefused(f"you may not use vhost '{vhost}'", ErrorKind.ACCESS_REFUSED)
    return _answered(context, user, vhost, {"id": id_, "statement": statement, "rows": rows})


def _answered(
    context: AdminContext, user: User, vhost: str, question: dict[str, Any]
) -> Slices[Row]:
    import msgspec

    answer = context.questions().ask(user, vhost, question)
    while not answer.done():
        yield answer
    made: Row = msgspec.json.decode(answer.result())
    return made


@SQL.over_http("DELETE /api/sql/{id}", tag=MANAGEMENT, place=ANYWHERE)
def cancel(context: AdminContext, id_: QuestionId) -> None:
    """End a question of your own that is being answered."""
    if not context.questions().cancel(_asking(context).name, id_):
        raise missing(f"you have no question '{id_[:_ID_CHARACTERS]}' that is being answered")


def _asking(context: AdminContext) -> User:
    """Return the user who asks.

    Raises:
        CommandRefused: it came by the control socket, which has no user.
    """
    if context.actor is None:
        raise CommandRefused("`harebell sql` asks from the command line")
    return context.actor

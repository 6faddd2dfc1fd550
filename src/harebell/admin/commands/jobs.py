"""Commands for jobs, which move, copy, remove or retry the messages that a condition selects."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import InVhost
from harebell.admin.catalog import DEAD_LETTERS, JOBS, QUEUES
from harebell.admin.command import MANAGEMENT, Argument, Form, Row, plural
from harebell.admin.commands.messages import READ, condition_of, decoded_payload
from harebell.admin.commands.queues import find_readable
from harebell.admin.context import AdminContext, CommandRefused, checked_table, missing
from harebell.admin.limits import DISCARD_REASON_CHARACTERS, RETRY_BODY_BYTES
from harebell.admin.message_row import BASE64, STRING
from harebell.admin.place import ANYWHERE
from harebell.admin.rows.common import time_text
from harebell.base.slices import at_once

if TYPE_CHECKING:
    from harebell.model.jobs import Job

NO_HEADERS: dict[str, Any] = {}
WRITE = "write"
RUNNING = "running"

ToQueue = Annotated[str, Argument("Another queue of the vhost.", "NAME")]
ToExchange = Annotated[
    str | None, Argument("An exchange of the vhost, instead of a queue.", "NAME")
]
NewRoutingKey = Annotated[
    str | None,
    Argument("The routing key for the exchange.  [default: that of each message]", "KEY"),
]


def _started(outcome: Mapping[str, Any]) -> str:
    what = plural(outcome["messages"], "message")
    return (
        f"job {outcome['id']} goes through {what} of queue '{outcome['queue']}' in vhost "
        f"'{outcome['vhost']}': `harebell jobs list` shows how far it is"
    )


def _transferring(verb: str) -> Callable[..., Row]:
    """Return the command that moves or copies messages."""

    @QUEUES.command(
        f"POST /api/queues/{{vhost}}/{{name}}/{verb}",
        tag=MANAGEMENT,
        verb=verb,
        summary=f"{verb.capitalize()} the messages that a condition selects to another queue or to "
        "an exchange, by a job.",
        done=_started,
        status=200,
    )
    def transfer(
        context: AdminContext,
        name: str,
        where: str,
        vhost: InVhost = "/",
        to_queue: ToQueue = "",
        to_exchange: ToExchange = None,
        routing_key: NewRoutingKey = None,
    ) -> Row:
        target = _target(to_queue, to_exchange, routing_key)
        return _start(context, verb, vhost, name, where, *target)

    return transfer


move = _transferring("move")
copy = _transferring("copy")


@QUEUES.command("POST /api/queues/{vhost}/{name}/remove", tag=MANAGEMENT, done=_started, status=200)
def remove(context: AdminContext, name: str, where: str, vhost: InVhost = "/") -> Row:
    """Remove the messages that a condition selects from a queue, by a job."""
    return _start(context, "remove", vhost, name, where)


@DEAD_LETTERS.command(tag=MANAGEMENT, done=_started)
@QUEUES.command("POST /api/queues/{vhost}/{name}/retry", tag=MANAGEMENT, done=_started, status=200)
def retry(
    context: AdminContext,
    name: str,
    where: str,
    vhost: InVhost = "/",
    payload: Annotated[
        str | None, Argument("The body that they get.  [default: their own]", "TEXT")
    ] = None,
    payload_encoding: Annotated[
        str, Argument("How this body is written.", choices=(STRING, BASE64))
    ] = STRING,
    headers: Annotated[
        dict[str, Any],
        Argument("A header that they get: name=text, or name:=null for none.", form=Form.TABLE),
    ] = NO_HEADERS,
) -> Row:
    """Move the dead letters that a condition selects to where they first died, by a job."""
    body = None
    if payload is not None:
        edited = at_once(decoded_payload(payload[: 2 * RETRY_BODY_BYTES], payload_encoding))
        if len(edited) > RETRY_BODY_BYTES:
            raise CommandRefused(
                f"the payload has {len(edited)} bytes, at most {RETRY_BODY_BYTES} are allowed: "
                "publish it as a new message"
            )
        body = b64encode(edited).decode()
    # Each message names its queue, so the user has to be allowed to publish to all of them.
    changed = _edited_headers(headers)
    return _start(context, "retry", vhost, name, where, body=body, headers=changed)


def _edited_headers(headers: dict[str, Any]) -> str:
    from harebell.wire.v09.content import BasicProperties, encode_properties

    if not headers:
        return ""
    table = checked_table(headers, "headers")
    try:
        return b64encode(encode_properties(BasicProperties(headers=table))).decode()
    except (ValueError, TypeError) as error:
        raise CommandRefused(f"headers cannot be encoded: {error}") from None


@DEAD_LETTERS.command(tag=MANAGEMENT, done=_started)
@QUEUES.command(
    "POST /api/queues/{vhost}/{name}/discard", tag=MANAGEMENT, done=_started, status=200
)
def discard(
    context: AdminContext,
    name: str,
    where: str,
    vhost: InVhost = "/",
    reason: Annotated[str, Argument("Why; the job and the log have it.", "TEXT")] = "",
    hold: Annotated[
        str | None, Argument("Another queue that keeps them, so that it can be undone.", "NAME")
    ] = None,
) -> Row:
    """Remove the messages that a condition selects, or move them to a queue that holds them."""
    if len(reason) > DISCARD_REASON_CHARACTERS:
        raise CommandRefused(
            f"the reason has {len(reason)} characters, at most {DISCARD_REASON_CHARACTERS} are "
            "allowed: shorten it"
        )
    # An empty name, such as of a variable that is not set, must not remove what was to be held.
    if hold is None:
        return _start(context, "remove", vhost, name, where, reason=reason)
    return _start(context, "discard", vhost, name, where, "", hold, reason=reason)


def _target(queue: str, exchange: str | None, key: str | None) -> tuple[str, str | None]:
    if bool(queue) == (exchange is not None):
        raise CommandRefused("say where to: either to_queue or to_exchange")
    if queue and key is not None:
        raise CommandRefused("a queue has no routing key: leave it out, or name an exchange")
    return ("", queue) if queue else (exchange or "", key)


def _start(
    context: AdminContext,
    verb: str,
    vhost: str,
    name: str,
    where: str,
    exchange: str = "",
    routing_key: str | None = None,
    **more: Any,
) -> Row:
    from harebell.model.jobs import REMOVE, Orders

    place, queue = find_readable(context, vhost, name)
    if verb != REMOVE:
        context.check_permission(place, WRITE, "exchange", exchange)
    condition_of(where or "true")
    user = "" if context.actor is None else context.actor.name
    orders = Orders(verb, place.name, queue.name, where, exchange, routing_key, user, **more)
    job = context.broker.jobs.start(orders, context.job_rights(orders))
    why = f": {orders.reason}" if orders.reason else ""
    context.log(
        "info",
        f"job {job.number} ({verb}) was started on queue '{queue.name}' in vhost '{place.name}'"
        f"{why}",
    )
    return job_row(job)


_COLUMNS = (
    *("id", "verb", "vhost", "queue", "where", "exchange", "routing_key", "user", "reason"),
    *("state", "messages", "examined", "selected", "done", "left", "problem", "started", "ended"),
)


def job_row(job: Job) -> Row:
    """Return the row of a job."""
    row = job.row()
    return {
        # What messages are changed to is for those who may read them.
        **{name: row[name] for name in _COLUMNS},
        **{name: time_text(row[name]) if row[name] else "" for name in ("started", "ended")},
    }


@JOBS.listing(
    "jobs",
    "GET /api/jobs",
    tag=MANAGEMENT,
    row=_COLUMNS,
    shown=("id", "verb", "vhost", "queue", "state", "examined", "selected", "done", "left"),
)
def list_jobs(context: AdminContext) -> list[Row]:
    """List jobs by their numbers."""
    return [job_row(job) for job in context.broker.jobs.all() if _sees(context, job)]


def _sees(context: AdminContext, job: Job) -> bool:
    """True if the actor may see a job: its condition and its problem tell of messages.

    Its user may, who may read its queue, and who may see what others do.
    """
    orders, actor = job.orders, context.actor
    if actor is None or context.may_see_work_of(orders.user):
        return True
    return actor.opens(orders.vhost) and actor.allows(orders.vhost, READ, "queue", orders.queue)


def _said(outcome: Mapping[str, Any]) -> str:
    end = f": {outcome['problem']}" if outcome["problem"] else ""
    return (
        f"job {outcome['id']} ({outcome['verb']}) is {outcome['state']}: {outcome['done']} of "
        f"{plural(outcome['selected'], 'selected message')} done, {outcome['left']} left{end}"
    )


@JOBS.command("GET /api/jobs/{id}", tag=MANAGEMENT, done=_said, place=ANYWHERE)
def show(context: AdminContext, id_: int) -> Row:
    """Show one job."""
    return job_row(_job(context, id_))


@JOBS.command(
    "DELETE /api/jobs/{id}", tag=MANAGEMENT, done="job {id} was cancelled", place=ANYWHERE
)
def cancel(context: AdminContext, id_: int) -> Row:
    """Cancel a job; what it has done stays done."""
    job = _job(context, id_)
    if job.state != RUNNING:
        raise CommandRefused(f"job {id_} is not running: it is {job.state}")
    context.check_work_of(job.orders.user, f"job {id_}", "cancel")
    context.broker.jobs.cancel(job)
    context.log("info", f"job {id_} was cancelled")
    return job_row(job)


@DEAD_LETTERS.command(tag=MANAGEMENT, done=_started, place=ANYWHERE)
@JOBS.command("POST /api/jobs/{id}/undo", tag=MANAGEMENT, done=_started, place=ANYWHERE, status=200)
def undo(context: AdminContext, id_: int) -> Row:
    """Move back what a job has discarded and its queue still holds, by a job."""
    from harebell.model.jobs import DISCARD, DISCARD_JOB, RESTORE

    job = _job(context, id_)
    orders = job.orders
    if orders.verb != DISCARD or orders.routing_key is None:
        raise CommandRefused(
            f"job {id_} ({orders.verb}) cannot be undone: only a discard can that another queue "
            "holds"
        )
    if job.state == RUNNING:
        raise CommandRefused(f"job {id_} is running: wait for its end, or cancel it")
    where = f"headers.{DISCARD_JOB} = {id_}"
    back = ("", orders.queue)
    return _start(context, RESTORE, orders.vhost, orders.routing_key, where, *back, undoes=id_)


def _job(context: AdminContext, number: int) -> Job:
    job = context.broker.jobs.find(number)
    if job is None or not _sees(context, job):
        raise missing(f"no job {number}: `harebell jobs list` shows all")
    return job

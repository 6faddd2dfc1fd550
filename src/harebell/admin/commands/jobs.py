"""Commands for jobs, which move, copy, remove or retry the messages that a condition selects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harebell.admin.arguments import InVhost
from harebell.admin.catalog import JOBS, QUEUES
from harebell.admin.command import MANAGEMENT, Argument, Row, plural
from harebell.admin.commands.messages import READ, condition_of, time_text
from harebell.admin.commands.queues import find_queue
from harebell.admin.context import AdminContext, CommandRefused, missing
from harebell.admin.place import ANYWHERE

if TYPE_CHECKING:
    from harebell.model.jobs import Job

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


def _started(known: Mapping[str, Any]) -> str:
    what = plural(known["messages"], "message")
    return (
        f"job {known['id']} goes through {what} of queue '{known['queue']}' in vhost "
        f"'{known['vhost']}': `harebell jobs list` shows how far it is"
    )


@QUEUES.command("POST /api/queues/{vhost}/{name}/move", tag=MANAGEMENT, done=_started, status=200)
def move(
    context: AdminContext,
    name: str,
    where: str,
    vhost: InVhost = "/",
    to_queue: ToQueue = "",
    to_exchange: ToExchange = None,
    routing_key: NewRoutingKey = None,
) -> Row:
    """Move the messages that a condition selects to another queue or to an exchange, by a job."""
    target = _target(context, vhost, to_queue, to_exchange, routing_key)
    return _start(context, "move", vhost, name, where, *target)


@QUEUES.command("POST /api/queues/{vhost}/{name}/copy", tag=MANAGEMENT, done=_started, status=200)
def copy(
    context: AdminContext,
    name: str,
    where: str,
    vhost: InVhost = "/",
    to_queue: ToQueue = "",
    to_exchange: ToExchange = None,
    routing_key: NewRoutingKey = None,
) -> Row:
    """Copy the messages that a condition selects to another queue or to an exchange, by a job."""
    target = _target(context, vhost, to_queue, to_exchange, routing_key)
    return _start(context, "copy", vhost, name, where, *target)


@QUEUES.command("POST /api/queues/{vhost}/{name}/remove", tag=MANAGEMENT, done=_started, status=200)
def remove(context: AdminContext, name: str, where: str, vhost: InVhost = "/") -> Row:
    """Remove the messages that a condition selects from a queue, by a job."""
    return _start(context, "remove", vhost, name, where, "", None)


@QUEUES.command("POST /api/queues/{vhost}/{name}/retry", tag=MANAGEMENT, done=_started, status=200)
def retry(context: AdminContext, name: str, where: str, vhost: InVhost = "/") -> Row:
    """Move the dead letters that a condition selects to where they first died, by a job."""
    if context.actor is not None:
        # Each message names its queue, so the user has to be allowed to publish to all of them.
        context.check_permission(context.vhost(vhost), WRITE, "exchange", "")
    return _start(context, "retry", vhost, name, where, "", None)


def _target(
    context: AdminContext, vhost: str, queue: str, exchange: str | None, key: str | None
) -> tuple[str, str | None]:
    if bool(queue) == (exchange is not None):
        raise CommandRefused("say where to: either to_queue or to_exchange")
    if queue and key is not None:
        raise CommandRefused("a queue has no routing key: leave it out, or name an exchange")
    context.check_permission(context.vhost(vhost), WRITE, "exchange", exchange or "")
    return ("", queue) if queue else (exchange or "", key)


def _start(
    context: AdminContext,
    verb: str,
    vhost: str,
    name: str,
    where: str,
    exchange: str,
    routing_key: str | None,
) -> Row:
    from harebell.model.jobs import Orders

    context.check_permission(context.vhost(vhost), READ, "queue", name)
    place, queue = find_queue(context, vhost, name)
    condition_of(where or "true")
    user = "" if context.actor is None else context.actor.name
    orders = Orders(verb, place.name, queue.name, where, exchange, routing_key, user)
    job = context.broker.jobs.start(orders)
    context.log(
        "info",
        f"job {job.number} ({verb}) was started on queue '{queue.name}' in vhost '{place.name}'",
    )
    return job_row(job)


class JobRow(TypedDict):
    """A job."""

    id: int
    verb: str
    vhost: str
    queue: str
    where: str
    exchange: str
    routing_key: str | None
    user: str
    state: str
    messages: int
    examined: int
    selected: int
    done: int
    left: int
    problem: str
    started: str
    ended: str


def job_row(job: Job) -> Row:
    """Return what there is to say about a job."""
    row = job.row()
    return {
        **row,
        **{name: time_text(row[name]) if row[name] else "" for name in ("started", "ended")},
    }


@JOBS.listing(
    "jobs",
    "GET /api/jobs",
    tag=MANAGEMENT,
    row=JobRow,
    shown=("id", "verb", "vhost", "queue", "state", "examined", "selected", "done", "left"),
)
def list_jobs(context: AdminContext) -> list[Row]:
    """List jobs by their numbers."""
    return [job_row(job) for job in context.broker.jobs.all() if context.may_see(job.orders.vhost)]


def _said(known: Mapping[str, Any]) -> str:
    end = f": {known['problem']}" if known["problem"] else ""
    return (
        f"job {known['id']} ({known['verb']}) is {known['state']}: {known['done']} of "
        f"{plural(known['selected'], 'selected message')} done, {known['left']} left{end}"
    )


@JOBS.command("GET /api/jobs/{id}", tag=MANAGEMENT, done=_said, place=ANYWHERE)
def show(context: AdminContext, id_: int) -> Row:
    """Print one job."""
    return job_row(_job(context, id_))


@JOBS.command(
    "DELETE /api/jobs/{id}", tag=MANAGEMENT, done="job {id} was cancelled", place=ANYWHERE
)
def cancel(context: AdminContext, id_: int) -> Row:
    """Cancel a job; what it has done stays done."""
    job = _job(context, id_)
    if job.state != RUNNING:
        raise CommandRefused(f"job {id_} is not running: it is {job.state}")
    context.check_permission(context.vhost(job.orders.vhost), READ, "queue", job.orders.queue)
    context.broker.jobs.cancel(job)
    context.log("info", f"job {id_} was cancelled")
    return job_row(job)


def _job(context: AdminContext, number: int) -> Job:
    job = context.broker.jobs.find(number)
    if job is None or not context.may_see(job.orders.vhost):
        raise missing(f"no job {number}: `harebell jobs list` shows all")
    return job

"""`harebell explain`: what would happen to a message, without publishing it."""

from __future__ import annotations

from typing import Any

import click

from harebell.admin.command import plural
from harebell.cli.broker_options import broker_options
from harebell.cli.nouns import RunningBroker
from harebell.cli.properties import properties_of, property_flags
from harebell.cli.verb import Verb, echo

_COMMAND = "exchanges.explain"
_DEFAULT = "amq.default"


def _with_broker(command: click.Command) -> click.Command:
    command.params += broker_options()
    return command


@_with_broker
@click.command(cls=Verb)
@click.option(
    "-e", "--exchange", default="", metavar="NAME", help="Exchange that it is published to."
)
@click.option(
    "-r",
    "--routing-key",
    default="",
    metavar="KEY",
    help="Routing key; with the default exchange it is the name of a queue.",
)
@click.option("--vhost", default="/", metavar="NAME", help="The vhost it is in.  [default: /]")
@click.option(
    "--size", type=click.IntRange(min=0), default=0, metavar="BYTES", help="Size of the body."
)
@click.option("--user", metavar="NAME", help="Look at the permissions of this user.")
@property_flags
def explain(
    exchange: str,
    routing_key: str,
    vhost: str,
    size: int,
    user: str | None,
    data_dir: str | None,
    config_file: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Say what would happen to a message, without publishing it.

    The answer has the permissions that are needed, the bindings that match, and for each queue
    whether it delivers, keeps or refuses the message, and where dead letters would go.
    """
    if not exchange and not routing_key:
        raise click.UsageError(
            "To which queue? The default exchange needs its name: add --routing-key QUEUE, or name "
            "another exchange with --exchange"
        )
    broker = RunningBroker(data_dir, config_file, as_json)
    fields = {
        "name": exchange or _DEFAULT,
        "routing_key": routing_key,
        "vhost": vhost,
        "payload_bytes": size,
        "properties": properties_of(given),
        **({} if user is None else {"user": user}),
    }
    answer = broker.ask(_COMMAND, fields)
    if as_json:
        broker.print_object(answer)
        return
    for line in lines(answer):
        echo(line)


def lines(answer: dict[str, Any]) -> list[str]:
    """Return the answer for people."""
    lines = [answer["verdict"]]
    if answer["blocked"]:
        lines.append(f"Publishers are blocked now: {answer['blocked']}.")
    if answer["user"]:
        lines += ["", f"permissions of user '{answer['user']}'"]
        lines += [f"  {_check(row)}" for row in answer["permissions"]]
    lines += ["", "route"]
    for step in answer["steps"]:
        lines += _step(step)
    if answer["queues"]:
        lines += ["", "queues"]
    for queue in answer["queues"]:
        lines += _queue(queue)
    left = answer["queues_total"] - len(answer["queues"])
    if left:
        lines.append(f"  and {plural(left, 'queue')} more")
    return lines


def _check(row: dict[str, Any]) -> str:
    return f"no   {row['reason']}" if not row["allowed"] else f"yes  {row['check']}"


def _step(step: dict[str, Any]) -> list[str]:
    name = step["exchange"] or "(default exchange)"
    how = f", the alternate exchange of '{step['source']}'"
    lines = [f"  {step['type']} exchange '{name}'{how if step['via'] != 'publish' else ''}"]
    if step["via"] == "binding":
        lines = [f"  {step['type']} exchange '{name}', from '{step['source']}'"]
    lines.append(f"    {step['explanation']}")
    for each in step["bindings"]:
        arguments = f" {each['arguments']}" if each["arguments"] else ""
        lines.append(
            f"    '{each['routing_key']}'{arguments} -> "
            f"{each['destination_type']} '{each['destination']}'"
        )
    return lines


def _queue(queue: dict[str, Any]) -> list[str]:
    ready = plural(queue["messages_ready"], "message")
    consumers = plural(queue["consumers"], "consumer")
    lines = [
        f"  {queue['type']} queue '{queue['name']}': {ready} ready, {consumers}",
        f"    {queue['explanation']}",
    ]
    letters = queue["dead_letters"]
    if letters is not None:
        to = ", ".join(f"'{name}'" for name in letters["queues"]) or "no queue"
        gone = "" if letters["exists"] else ", which does not exist"
        lines.append(
            f"    dead letters: exchange '{letters['exchange']}'{gone}, key "
            f"'{letters['routing_key']}', to {to}"
        )
    return lines

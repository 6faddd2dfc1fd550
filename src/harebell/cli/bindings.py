"""`harebell bindings`: the bindings of a running broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Broker, Noun, asks
from harebell.cli.properties import argument_flag, headers_of

_SHOWN = ("vhost", "source_name", "destination_kind", "destination_name", "routing_key")
_COLUMNS = (
    *("vhost", "source_name", "source_kind", "destination_name", "destination_kind"),
    *("routing_key", "arguments"),
)


@click.group(cls=Noun, also={"bind": "add", "unbind": "delete"})
def bindings() -> None:
    """Look at the bindings of a running broker, add and delete them."""


listing(bindings, "bindings.list", "bindings", _SHOWN, _COLUMNS)


def _names_a_binding(action: Callable[..., Any]) -> Callable[..., Any]:
    """Give an action the arguments and flags that say which binding is meant."""
    for part in reversed(
        (
            click.argument("source"),
            click.argument("destination"),
            click.option(
                *("--vhost",),
                metavar="NAME",
                default="/",
                show_default=True,
                help="The vhost it is in.",
            ),
            click.option(
                *("-r", "--routing-key"), metavar="KEY", default="", help="Its routing key."
            ),
            click.option("--to-exchange", is_flag=True, help="DESTINATION is an exchange."),
            argument_flag,
        )
    ):
        action = part(action)
    return action


def _asked(
    broker: Broker, command: str, arguments: tuple[str, ...], **fields: Any
) -> dict[str, Any]:
    table = headers_of(arguments, "argument")
    answer: dict[str, Any] = broker.ask(command, arguments=table, **fields)
    return answer


def _sentence(answer: dict[str, Any]) -> str:
    key = f" with the key '{answer['routing_key']}'" if answer["routing_key"] else ""
    return (
        f"{answer['destination_kind']} '{answer['destination_name']}' in vhost "
        f"'{answer['vhost']}' is {{}}bound to exchange '{answer['source_name']}'{key}"
    )


@bindings.command()
@_names_a_binding
@asks
def add(broker: Broker, **fields: Any) -> None:
    """Bind the queue DESTINATION to the exchange SOURCE."""
    answer = _asked(broker, "bindings.add", **fields)
    broker.tell(answer, _sentence(answer).format(""))


@bindings.command()
@_names_a_binding
@asks
def delete(broker: Broker, **fields: Any) -> None:
    """Delete a binding of the queue DESTINATION to the exchange SOURCE."""
    answer = _asked(broker, "bindings.delete", **fields)
    broker.tell(answer, _sentence(answer).format("no longer "))

"""`harebell parameters`: values of vhosts that are kept for tools."""

from __future__ import annotations

from typing import Any

import click

from harebell.cli.failure import WrongUsage
from harebell.cli.noun import Broker, Noun, asks

_VHOST = click.option(
    "--vhost", metavar="NAME", default="/", show_default=True, help="The vhost it is for."
)


def json_value(text: str) -> Any:
    """The value that somebody wrote as JSON."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise WrongUsage(
            f"""the value {text!r} is not JSON ({error}): write one such as '{{"a": 1}}' """
            """or '"text"'"""
        ) from None


@click.group(cls=Noun)
def parameters() -> None:
    """Manage parameters of vhosts, which are kept for tools."""


@parameters.command("list")
@click.option("--vhost", metavar="NAME", help="Only those of this vhost.")
@asks
def list_(broker: Broker, vhost: str | None) -> None:
    """Print all parameters."""
    answer = broker.ask("parameters.list", vhost=vhost)
    broker.table(answer, ("vhost", "component", "name", "value"))


@parameters.command("set")
@click.argument("component")
@click.argument("name")
@click.argument("value")
@_VHOST
@asks
def set_(broker: Broker, component: str, name: str, value: str, vhost: str) -> None:
    """Set the parameter NAME of a component. VALUE is JSON."""
    answer = broker.ask(
        "parameters.set", component=component, name=name, vhost=vhost, value=json_value(value)
    )
    broker.tell(answer, f"parameter '{component}' '{name}' in vhost '{vhost}' was set")


@parameters.command()
@click.argument("component")
@click.argument("name")
@_VHOST
@asks
def clear(broker: Broker, component: str, name: str, vhost: str) -> None:
    """Forget the parameter NAME of a component."""
    answer = broker.ask("parameters.clear", component=component, name=name, vhost=vhost)
    broker.tell(answer, f"parameter '{component}' '{name}' in vhost '{vhost}' was cleared")

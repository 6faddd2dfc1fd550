"""`harebell global-parameters`: values of the whole broker that are kept for tools."""

from __future__ import annotations

import click

from harebell.cli.noun import Broker, Noun, asks
from harebell.cli.parameters import json_value


@click.group("global-parameters", cls=Noun)
def global_parameters() -> None:
    """Manage parameters of the whole broker, which are kept for tools."""


@global_parameters.command("list")
@asks
def list_(broker: Broker) -> None:
    """Print all global parameters."""
    broker.table(broker.ask("global-parameters.list"), ("name", "value"))


@global_parameters.command("set")
@click.argument("name")
@click.argument("value")
@asks
def set_(broker: Broker, name: str, value: str) -> None:
    """Set the global parameter NAME. VALUE is JSON."""
    answer = broker.ask("global-parameters.set", name=name, value=json_value(value))
    broker.tell(answer, f"global parameter '{name}' was set")


@global_parameters.command()
@click.argument("name")
@asks
def clear(broker: Broker, name: str) -> None:
    """Forget the global parameter NAME."""
    answer = broker.ask("global-parameters.clear", name=name)
    broker.tell(answer, f"global parameter '{name}' was cleared")

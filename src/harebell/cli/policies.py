"""`harebell policies`: settings for queues and exchanges by name; and the same for operators."""

from __future__ import annotations

from typing import Any

import click

from harebell.cli.failure import WrongUsage
from harebell.cli.noun import Broker, Noun, asks

_COLUMNS = ("vhost", "name", "pattern", "apply-to", "priority", "definition")
_VHOST = click.option(
    "--vhost", metavar="NAME", default="/", show_default=True, help="The vhost it is for."
)


def fill(group: click.Group, what: str, *, operator: bool) -> None:
    """Give a group its actions.

    Args:
        group: the verb.
        what: what it manages, in the singular.
        operator: whether that is operator policies.
    """

    @group.command("list", help=f"Print every {what}.")
    @click.option("--vhost", metavar="NAME", help="Only those of this vhost.")
    @asks
    def list_(broker: Broker, vhost: str | None) -> None:
        answer = broker.ask("policies.list", vhost=vhost, operator=operator)
        broker.table(answer, _COLUMNS)

    @group.command("set", help=f"Set the {what} NAME. DEFINITION is a JSON object.")
    @click.argument("name")
    @click.argument("pattern")
    @click.argument("definition")
    @_VHOST
    @click.option(
        "--apply-to", metavar="KIND", default="all", show_default=True, help="What it applies to."
    )
    @click.option(
        "--priority", type=int, default=0, show_default=True, help="The highest one applies."
    )
    @asks
    def set_(broker: Broker, name: str, vhost: str, definition: str, **fields: Any) -> None:
        answer = broker.ask(
            "policies.set",
            name=name,
            vhost=vhost,
            definition=_definition(definition),
            operator=operator,
            **fields,
        )
        broker.tell(answer, f"{what} '{name}' in vhost '{vhost}' was set")

    @group.command("clear", help=f"Forget the {what} NAME.")
    @click.argument("name")
    @_VHOST
    @asks
    def clear(broker: Broker, name: str, vhost: str) -> None:
        answer = broker.ask("policies.clear", name=name, vhost=vhost, operator=operator)
        broker.tell(answer, f"{what} '{name}' in vhost '{vhost}' was cleared")


def _definition(text: str) -> dict[str, Any]:
    import msgspec

    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise WrongUsage(
            f"""the definition {text!r} is not a JSON object ({error}): write one such as """
            """'{"max-length": 1000}'"""
        ) from None


@click.group(cls=Noun)
def policies() -> None:
    """Manage policies: settings for queues and exchanges by name."""


fill(policies, "policy", operator=False)

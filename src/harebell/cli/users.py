"""`harebell users`: who may log in to a running broker."""

from __future__ import annotations

import sys

import click

from harebell.cli.noun import Broker, Noun, asks, closed


@click.group(cls=Noun)
def users() -> None:
    """Manage the users of a running broker."""


def _secret(password: str | None) -> str:
    """The password given, or else one line of standard input."""
    if password is not None:
        return password
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\r\n")


def _split(tags: str) -> list[str]:
    return [tag.strip() for tag in tags.split(",") if tag.strip()]


@users.command("list")
@asks
def list_(broker: Broker) -> None:
    """Print all users."""
    broker.table(broker.ask("users.list"), ("name", "tags", "loopback_only", "hashing_algorithm"))


@users.command()
@click.argument("name")
@click.argument("password", required=False)
@click.option("--tags", metavar="TAG,...", default="", help="Tags, such as administrator.")
@asks
def add(broker: Broker, name: str, password: str | None, tags: str) -> None:
    """Add a user; without PASSWORD it is read from standard input."""
    answer = broker.ask("users.add", name=name, password=_secret(password), tags=_split(tags))
    broker.tell(answer, f"user '{name}' was added")


@users.command()
@click.argument("name")
@asks
def delete(broker: Broker, name: str) -> None:
    """Delete a user, and close the user's connections."""
    answer = broker.ask("users.delete", name=name)
    broker.tell(answer, f"user '{name}' was deleted{closed(answer)}")


@users.command("password")
@click.argument("name")
@click.argument("password", required=False)
@asks
def password_(broker: Broker, name: str, password: str | None) -> None:
    """Change a password; without PASSWORD it is read from standard input."""
    answer = broker.ask("users.password", name=name, password=_secret(password))
    broker.tell(answer, f"the password of user '{name}' was changed")


@users.command()
@click.argument("name")
@click.argument("password", required=False)
@asks
def authenticate(broker: Broker, name: str, password: str | None) -> None:
    """Try a password as if from this machine; without PASSWORD it is read from standard input."""
    answer = broker.ask("users.authenticate", name=name, password=_secret(password))
    broker.tell(answer, f"user '{name}' can log in with this password")


@users.command("tags")
@click.argument("name")
@click.argument("tags", nargs=-1, metavar="[TAG]...")
@asks
def tags_(broker: Broker, name: str, tags: tuple[str, ...]) -> None:
    """Give a user these tags and no other."""
    given = [tag for each in tags for tag in _split(each)]
    answer = broker.ask("users.tags", name=name, tags=given)
    broker.tell(answer, f"the tags of user '{name}' are: {', '.join(answer['tags']) or 'none'}")

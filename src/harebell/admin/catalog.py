"""The nouns of administration: their names, their help, and the files that have their commands.

The command line imports this file to print the list of its verbs, and so it imports nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from harebell.admin.place import EVERYWHERE, FIRST, SHARED

if TYPE_CHECKING:
    from harebell.admin.command import Command, Sentence


F = TypeVar("F", bound=Callable[..., Any])


class _More(TypedDict, total=False):
    row: type | Iterable[str]
    shown: tuple[str, ...]
    done: str | Sentence
    what: str
    status: int
    hidden: bool
    merge: str


class _Shared(TypedDict, total=False):
    shown: tuple[str, ...]
    status: int
    place: str
    merge: str


def column_names(row: type | Iterable[str]) -> tuple[str, ...]:
    """Return the names of the columns of a row."""
    return tuple(row.__annotations__ if isinstance(row, type) else row)


class Noun:
    """What a group of commands is about, such as queues.

    Args:
        name: what follows `harebell` on the command line, such as "queues".
        summary: what its commands do.
        module: the file of `harebell.admin.commands` that has them; several with spaces between.
        also: other words for its verbs.
        place: where its commands without a vhost run in a cluster; "" for everywhere if they may
            have a vhost, and here if not.
        order: the column by which its rows from several owners are in order; "" for none.
        of_vhosts: whether the argument "name" of its commands is a vhost.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        module: str,
        also: Mapping[str, str] | None = None,
        *,
        place: str = "",
        order: str = "vhost",
        of_vhosts: bool = False,
    ) -> None:
        self.name = name
        self.summary = summary
        self.also = also or {}
        self.place = place
        self.order = order
        self.of_vhosts = of_vhosts
        self._modules = module.split()
        self._commands: dict[str, Command] = {}

    @property
    def commands(self) -> dict[str, Command]:
        """Its commands by their verbs; their files are imported for the first time here."""
        for module in self._modules:
            import_module(f"harebell.admin.commands.{module}")
        return self._commands

    def command(
        self,
        *http: str,
        tag: str,
        verb: str = "",
        summary: str = "",
        place: str = "",
        **more: Unpack[_More],
    ) -> Callable[[F], F]:
        """Make a function a command; the arguments are those of `Command`."""
        from harebell.admin.command import Command, documentation

        def decorate(run: F) -> F:
            name = verb or run.__name__.rstrip("_").replace("_", "-")
            text = summary or documentation(run)
            self._commands[name] = Command(
                self, name, run, text, tag, http, own_place=place, **more
            )
            return run

        return decorate

    def over_http(
        self, *http: str, tag: str, verb: str = "", summary: str = "", **more: Unpack[_Shared]
    ) -> Callable[[F], F]:
        """Make a function a command that the command line has no use for."""
        return self.command(*http, tag=tag, verb=verb, summary=summary, hidden=True, **more)

    def listing(
        self,
        what: str,
        *http: str,
        tag: str,
        row: type | Iterable[str],
        summary: str = "",
        **more: Unpack[_Shared],
    ) -> Callable[[F], F]:
        """Make a function the command "list".

        Args:
            what: the plural of what it lists.
            *http: its routes.
            tag: which users may run it over HTTP.
            row: the columns: their names, or a `TypedDict`. All may be chosen if only some are
                shown.
            summary: what the command line says of it, if that is not "List all ...".
            **more: as of other commands.
        """
        text = summary or f"List all {what}."
        if more.get("shown"):
            text += f" Columns: {', '.join(column_names(row))}."
        return self.command(*http, tag=tag, verb="list", summary=text, row=row, what=what, **more)


QUEUES = Noun(
    "queues",
    "Look at the queues of a running broker and their messages, declare, purge and delete them.",
    "queues messages jobs waiting holders",
)
JOBS = Noun(
    "jobs",
    "Look at the jobs that move, copy, remove or retry messages, and cancel them.",
    "jobs",
    place=EVERYWHERE,
    order="id",
)
DEAD_LETTERS = Noun(
    "dead-letters",
    "Look at the dead letters of a vhost in groups, try them again, or discard them.",
    "dead_letters jobs",
)
EXCHANGES = Noun(
    "exchanges",
    "Look at the exchanges of a running broker, declare and delete them.",
    "exchanges messages explain waiting",
)
STREAMS = Noun(
    "streams",
    "Look at the super streams of a running broker, add and delete them.",
    "streams",
)
BINDINGS = Noun(
    "bindings",
    "Look at the bindings of a running broker, add and delete them.",
    "bindings",
    also={"bind": "add", "unbind": "delete"},
    place=EVERYWHERE,
)
CONNECTIONS = Noun(
    "connections",
    "Look at the connections to a running broker, and close them.",
    "connections",
    place=EVERYWHERE,
    order="connected_at",
)
CHANNELS = Noun(
    "channels",
    "Look at the channels of a running broker.",
    "connections",
    place=EVERYWHERE,
    order="",
)
CONSUMERS = Noun(
    "consumers",
    "Look at the consumers of a running broker.",
    "connections",
    order="",
)
TRANSACTIONS = Noun(
    "transactions",
    "Look at the distributed transactions of a running broker, and end them.",
    "transactions",
)
LEASES = Noun(
    "leases", "Look at the leases on queues of a running broker, and release them.", "leases"
)
STAGES = Noun(
    "stages",
    "Look at the batches that are staged in a running broker, and drop them.",
    "stages",
)
PUBLISHERS = Noun(
    "publishers",
    "Look at the named publishers of a running broker, and hand them over to other users.",
    "publishers",
)
QUERIES = Noun(
    "queries",
    "Look at the queries of data programs that report to a running broker.",
    "queries",
)
USERS = Noun(
    "users",
    "Manage the users of a running broker.",
    "users",
    place=SHARED,
    order="name",
)
PERMISSIONS = Noun(
    "permissions",
    "Manage what users may do in a vhost.",
    "permissions",
    place=EVERYWHERE,
)
TOPIC_PERMISSIONS = Noun(
    "topic-permissions",
    "Manage which routing keys users may use with a topic exchange.",
    "permissions",
    place=EVERYWHERE,
)
LIMITS = Noun(
    "limits",
    "Manage how much vhosts and users may have.",
    "limits",
    place=SHARED,
)
VHOSTS = Noun(
    "vhosts",
    "Manage the vhosts of a running broker.",
    "vhosts",
    place=EVERYWHERE,
    order="name",
    of_vhosts=True,
)
TRACE = Noun(
    "trace",
    """Show all messages of a vhost to its exchange amq.rabbitmq.trace, or stop that.

    Every message that is published or delivered is copied there, which costs a good part of the
    speed while it lasts.
    """,
    "vhosts",
)
POLICIES = Noun(
    "policies", "Manage policies: settings for queues and exchanges by name.", "policies"
)
OPERATOR_POLICIES = Noun(
    "operator-policies", "Manage operator policies, for limits to what policies set.", "policies"
)
PARAMETERS = Noun(
    "parameters",
    "Manage parameters of vhosts, which are kept for tools.",
    "parameters",
    place=EVERYWHERE,
)
GLOBAL_PARAMETERS = Noun(
    "global-parameters",
    "Manage parameters of the whole broker, which are kept for tools.",
    "parameters",
    place=FIRST,
    order="name",
)
DEFINITIONS = Noun(
    "definitions",
    "Carry what is declared from one broker to another, also from and to RabbitMQ.",
    "definitions",
)
CONFIG = Noun(
    "config",
    "Show, check and convert configurations; reload or change that of a running broker.",
    "config",
)
LISTENERS = Noun(
    "listeners",
    "Close the ports for AMQP of a running broker, and open them again.",
    "operating",
    also={"close": "suspend", "open": "resume"},
)
APP = Noun(
    "app",
    "Stop the broker within its running process, start it again, or remove what it has stored.",
    "operating",
)
CLUSTER = Noun(
    "cluster",
    "Look at the brokers that share a store in PostgreSQL, and give the store to another one.",
    "cluster",
    order="store",
)
BACKUPS = Noun(
    "backups",
    "Look at the backups of a running broker, and end the one that is being made.",
    "backups",
    order="",
    place=FIRST,
)
LOGS = Noun(
    "logs",
    "Look at the log of a running broker, and open its files anew.",
    "logs",
    also={"rotate": "reopen", "list": "tail", "show": "tail"},
)
AUDIT = Noun(
    "audit",
    "Look at who has changed what in a running broker.",
    "audit",
    place=EVERYWHERE,
    order="number",
)

NOUNS: dict[str, Noun] = {
    noun.name: noun
    for noun in (
        *(
            QUEUES,
            JOBS,
            DEAD_LETTERS,
            EXCHANGES,
            STREAMS,
            BINDINGS,
            CONNECTIONS,
            CHANNELS,
            CONSUMERS,
        ),
        *(TRANSACTIONS, LEASES, STAGES, PUBLISHERS, QUERIES),
        *(USERS, PERMISSIONS, TOPIC_PERMISSIONS, LIMITS, VHOSTS, TRACE),
        *(POLICIES, OPERATOR_POLICIES, PARAMETERS, GLOBAL_PARAMETERS, DEFINITIONS),
        *(CONFIG, LISTENERS, APP, CLUSTER, BACKUPS, LOGS, AUDIT),
    )
}
"""Every noun, in the order in which the command line shows them."""

SERVICE = Noun("service", "What the HTTP API has beside the nouns of the command line.", "service")
OVERVIEW = Noun(
    "overview",
    "Totals and rates of the whole broker.",
    "overview search",
    place=EVERYWHERE,
)
NODES = Noun(
    "nodes",
    "The process of the broker.",
    "nodes",
    order="name",
)
HEALTH = Noun("health", "Health checks.", "health", order="node")
SQL = Noun("sql", "Questions in SQL about the messages of a vhost.", "sql")
SCHEMAS = Noun("schemas", "Schemas of messages, from a registry.", "schemas")
HTTP_NOUNS: dict[str, Noun] = {
    noun.name: noun for noun in (SERVICE, OVERVIEW, NODES, HEALTH, SQL, SCHEMAS)
}
"""Nouns whose commands are served over HTTP, and not on the command line."""


def find(name: str) -> Command | None:
    """The command of a name such as "queues.purge"; None if there is none."""
    noun, _, verb = name.partition(".")
    described = NOUNS.get(noun) or HTTP_NOUNS.get(noun)
    return None if described is None else described.commands.get(verb)


def commands() -> Iterator[Command]:
    """Every command of every noun."""
    for noun in (*NOUNS.values(), *HTTP_NOUNS.values()):
        yield from noun.commands.values()

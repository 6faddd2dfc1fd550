"""What a command works on: the broker, its users, and its connections."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harebell.admin.findings import Findings, NoFindings
from harebell.admin.login_attempts import LoginAttempts
from harebell.admin.node import NodeFacts
from harebell.admin.statistics import NoStatistics, Statistics
from harebell.base.errors import ErrorKind, HarebellError, shortened
from harebell.base.names import did_you_mean

if TYPE_CHECKING:
    from harebell.admin.log_line import LogLine
    from harebell.admin.operation import Audit, Backups, Operation, Questions, Schemas
    from harebell.auth.users import User, Users
    from harebell.base.ports import Definitions
    from harebell.base.slices import Slices
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.settings import Settings
    from harebell.front.operations.caller import Caller
    from harebell.front.operations.job_rights import JobRights
    from harebell.front.operations.without_connection import Door
    from harebell.model.broker import Broker
    from harebell.model.jobs import Orders
    from harebell.model.vhost import VHost

    RecentLines = Callable[[int, int, Callable[[str], bool]], list[LogLine]]

_SEE_ALL = frozenset(("administrator", "monitoring"))
"""Tags with which a user sees every vhost."""


class CommandRefused(HarebellError):
    """A command is refused.

    Args:
        text: a sentence that says how to correct it.
        kind: the reason: what is missing, forbidden, or anything else.
    """

    def __init__(self, text: str, kind: ErrorKind = ErrorKind.PRECONDITION_FAILED) -> None:
        super().__init__(shortened(text))
        self.kind = kind


def missing(text: str) -> CommandRefused:
    """Return the refusal for something that does not exist."""
    return CommandRefused(text, ErrorKind.NOT_FOUND)


class WrongArgument(CommandRefused):
    """An argument of a command is wrong, whatever the broker has: 400 over HTTP."""


class Unavailable(CommandRefused):
    """What a command is about is at a broker that does not answer now: 503 over HTTP."""


class CheckFailed(CommandRefused):
    """A health check has failed: the status 503 over HTTP.

    Args:
        reason: the text for `reason` in the answer.
        **more: further members of the answer.

    Attributes:
        answer: the body of the answer.
    """

    def __init__(self, reason: str, **more: Any) -> None:
        super().__init__(reason)
        self.answer = {"status": "failed", "reason": reason, **more}


class AdminContext:
    """A running broker, for its commands.

    Args:
        broker: the vhosts, with their queues and exchanges.
        users: the accounts that may log in, and their permissions.
        registry: its connections.
        definitions: where users and permissions are stored.
        clock: returns seconds, monotonic.
        log: takes a level and a line.
        statistics: samples of the counters; without them all rates are 0.
        node: returns the facts about the process.
        reload: reads the configuration again; returns the keys that changed and those that cannot.

    Attributes:
        actor: the user on whose behalf a command runs over HTTP; None on the control socket, whose
            user may do everything.
        via: where a command came in: "http", or "control" for the control socket.
        peer: who has sent it: an address, or a process of this machine; "" if that is unknown.
        login_attempts: counts logins.
        figures: returns the figures of `harebell status`; the app sets it.
        configuration: returns the configuration by keys, without secrets; the app sets it.
        recent_lines: returns the last lines of the log after a number, at most so many, of the
            levels that a function admits; the app sets it.
        auditor: returns what writes acts to the audit trail; None for no trail. The app sets it.
        brokers: returns the brokers that share a store in PostgreSQL, none for one in the data
            directory; the app sets it.
        operation: stops, starts and changes the process; the app sets it.
        backups: makes backups of the broker; the app sets it.
        findings: what needs somebody; the app sets it.
        questions: returns what answers SQL; the app sets it.
        schemas: returns what reads schemas of messages; the app sets it.
        store: the number of the store, in a cluster with several of them.
        vhost_names: returns the names of all vhosts, in a cluster those of all stores.
        settings: what connections are configured with; the app sets it.
    """

    def __init__(
        self,
        broker: Broker,
        users: Users,
        registry: ConnectionRegistry,
        definitions: Definitions,
        clock: Callable[[], float],
        log: Callable[[str, str], None],
        statistics: Statistics | None = None,
        node: Callable[[], NodeFacts] = NodeFacts,
        reload: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        self.broker = broker
        self.users = users
        self.registry = registry
        self.definitions = definitions
        self.clock = clock
        self.log = log
        self.statistics = statistics or NoStatistics()
        self.node = node
        self.reload = reload
        self.figures: Callable[[], dict[str, Any]] = dict
        self.configuration: Callable[[], dict[str, Any]] = dict
        self.brokers: Callable[[], list[dict[str, Any]]] = list
        self.recent_lines: RecentLines = lambda _after, _limit, _admits: []
        self.auditor: Callable[[], Audit] | None = None
        self.operation: Operation
        self.backups: Backups
        self.findings: Findings = NoFindings()
        self.questions: Callable[[], Questions]
        self.schemas: Callable[[], Schemas]
        self.store = 1
        self.vhost_names: Callable[[], Iterable[str]] = lambda: broker.vhosts
        self.settings: Settings | None = None
        self.actor: User | None = None
        self.via = "control"
        self.peer = ""
        self.login_attempts = LoginAttempts()

    def on_behalf_of(self, user: User | None, via: str = "control", peer: str = "") -> AdminContext:
        """Return a context for the commands of a user; None for the control socket.

        Args:
            user: the actor.
            via: where the command came in.
            peer: who has sent it.
        """
        context = copy.copy(self)
        context.actor, context.via, context.peer = user, via, peer
        return context

    def check_node(self, name: str) -> None:
        """Refuse the name of another node.

        Raises:
            CommandRefused: NOT_FOUND.
        """
        node = self.broker.events.node
        if name != node:
            raise missing(f"no node '{name}': this one is '{node}'")

    def may_see(self, vhost: str) -> bool:
        """True if the actor may see the objects of a vhost: by permissions there, or by a tag."""
        return (
            self.actor is None
            or self.actor.opens(vhost)
            or not _SEE_ALL.isdisjoint(self.actor.tags)
        )

    def sees_everything(self) -> bool:
        """True if the actor may see the node, and what other users do."""
        return self.actor is None or not _SEE_ALL.isdisjoint(self.actor.tags)

    @property
    def leaves_out_stats(self) -> bool:
        """Whether answers have nothing that is counted: management_disable_stats, over HTTP."""
        return self.actor is not None and self.statistics.plan.disabled

    def check_stats(self) -> None:
        """Refuse a command over HTTP whose answers are counted things alone.

        Raises:
            CommandRefused: management_disable_stats is set.
        """
        if self.leaves_out_stats:
            raise CommandRefused("Stats in management UI are disabled on this node")

    def may_see_work_of(self, user: str) -> bool:
        """True if the actor may see the connections and channels of a user."""
        return self.sees_everything() or (self.actor is not None and self.actor.name == user)

    def check_work_of(self, user: str, what: str, verb: str) -> None:
        """Refuse to end what a user has started: that user may, and administrators.

        Args:
            user: who has started it; "" for the control socket.
            what: it, in the error.
            verb: what is asked for.

        Raises:
            CommandRefused: ACCESS_REFUSED.
        """
        actor = self.actor
        if actor is None or actor.name == user or "administrator" in actor.tags:
            return
        whose, also = (f"user '{user}'", "that user or ") if user else ("the operator", "")
        raise CommandRefused(
            f"{what} is one of {whose}: {also}an administrator may {verb} it",
            ErrorKind.ACCESS_REFUSED,
        )

    def caller(self, vhost: VHost) -> Caller:
        """Return the caller of an operation: the actor, or the operator on the control socket.

        It owns no exclusive queue: those of connections are refused, as to other connections.
        """
        from harebell.front.operations.caller import Caller, Operator
        from harebell.model.events import TOOL_USER

        user = Operator(TOOL_USER) if self.actor is None else self.actor
        return Caller(vhost, user, None, self.log)

    def door(self) -> Door:
        """Return what stands for a connection where a command publishes or gets messages."""
        from harebell.front.common.settings import Settings
        from harebell.front.operations.without_connection import Door

        return Door(self.settings or Settings(rng=bytes), self.broker, self.registry)

    def job_rights(self, orders: Orders) -> JobRights:
        """Return what a job may do on behalf of its user, as long as there is that user.

        A user of a backend is the one who has started the job; after a restart there is none.
        """
        from harebell.auth.authority import RemoteUser
        from harebell.front.common.settings import Settings
        from harebell.front.operations.caller import Caller
        from harebell.front.operations.job_rights import JobRights

        remote = isinstance(self.actor, RemoteUser)
        mine = self.actor if remote else self.users.get(orders.user)

        def find(orders: Orders) -> Caller | None:
            vhost = self.broker.vhosts[orders.vhost]
            if not orders.user:
                return self.on_behalf_of(None).caller(vhost)
            # Another user may have got the name.
            same = remote or self.users.get(orders.user) is mine
            return Caller(vhost, mine, None, self.log) if mine is not None and same else None

        return JobRights(orders, self.settings or Settings(rng=bytes), self.registry, find)

    def check_permission(self, vhost: VHost, action: str, kind: str, name: str) -> None:
        """Refuse an action that the actor has no permission for.

        Args:
            vhost: where the queue or exchange is.
            action: configure, write or read.
            kind: "queue" or "exchange".
            name: of the queue or exchange.

        Raises:
            CommandRefused: ACCESS_REFUSED.
        """
        from harebell.front.common.permission import check

        check(self.caller(vhost), action, kind, name)

    def user(self, name: str) -> User:
        """The user of that name.

        Raises:
            CommandRefused: there is none.
        """
        account = self.users.get(name)
        if account is None:
            names = [user.name for user in self.users.all()]
            raise missing(f"no user '{name}': {did_you_mean(name, names, quote=chr(39))}")
        return account

    def vhost(self, name: str) -> VHost:
        """The vhost of that name.

        Raises:
            CommandRefused: there is none.
        """
        vhost = self.broker.vhosts.get(name)
        if vhost is None:
            seen = [each for each in self.vhost_names() if self.may_see(each)]
            raise missing(f"no vhost '{name}': {did_you_mean(name, seen, quote=chr(39))}")
        return vhost

    def vhosts(self, only: str | None) -> list[VHost]:
        """Return the visible vhosts by name, or only the requested one.

        Raises:
            CommandRefused: there is none of that name.
        """
        if only is not None:
            return [self.vhost(only)]
        return [vhost for name, vhost in sorted(self.broker.vhosts.items()) if self.may_see(name)]

    def channels(self) -> Iterator[tuple[BaseConnection, AnyChannel]]:
        """Every channel with its connection; a session of AMQP 0-10 is one, too."""
        for connection in list(self.registry.connections):
            for channel in list(connection.channels.values()):
                yield connection, channel

    def disconnect(self, reason: str, which: Callable[[BaseConnection], bool]) -> Slices[int]:
        """Close some connections with 320 and a reason; returns how many.

        Those that come meanwhile are closed as well: at its end, none is open.
        """
        closed: set[BaseConnection] = set()
        while connections := [
            each for each in self.registry.connections if each not in closed and which(each)
        ]:
            for connection in connections:
                closed.add(connection)
                connection.force_close(reason, self.clock())
                yield
        return len(closed)


def checked_name(name: str, what: str, limit: int) -> str:
    """Check the name of something new.

    Raises:
        CommandRefused: it is empty or too long.
    """
    size = len(name.encode())
    if not size:
        raise CommandRefused(f"the name of a {what} must not be empty: give one")
    if size > limit:
        raise CommandRefused(
            f"the name of the {what} has {size} bytes, at most {limit} are allowed: shorten it"
        )
    return name


def checked_value(name: str, value: Any, what: str = "value of parameter") -> Any:
    """Check the value of a parameter, or the definition of a policy.

    Raises:
        CommandRefused: it is too deep, or has numbers or names that are too large.
    """
    from harebell.wire.v09.fields import encode_table

    try:
        encode_table({"value": value})
    except (ValueError, TypeError, RecursionError) as error:
        raise CommandRefused(f"the {what} '{name}' cannot be kept: {error}") from None
    return value


def checked_table(table: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return the table of AMQP that one in JSON stands for; see `harebell.wire.json_values`.

    Args:
        table: from a request.
        what: names it in errors, such as "the arguments of queue 'orders'".

    Raises:
        CommandRefused: AMQP cannot carry it.
    """
    from harebell.wire.json_values import given_table

    try:
        return given_table(table)
    except ValueError as error:
        raise CommandRefused(f"{what} cannot be taken: {error}") from None

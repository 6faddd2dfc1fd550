"""What the user of a job may do: asked again while it runs, for each slice and each message.

A job publishes for the user who has started it, so it needs what basic.publish needs: the write
permission of the exchange, the topic permission of each routing key, a user-id of its own, and a
body that is not too large. Rights that are taken away end the job, or leave the messages that they
were about. The job waits for what a backend of users has to be asked about, and while publishers
have to wait, as something is short.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING

from harebell.auth.authority import RemoteUser, Undecided
from harebell.auth.permissions import READ, WRITE
from harebell.base.errors import HarebellError
from harebell.front.common.permission import QUEUE, check, check_topic
from harebell.front.common.property_checks import check_user_id
from harebell.front.convert import property_of
from harebell.front.operations.publish import is_internal, too_large, writable_exchange
from harebell.model.jobs import REMOVE, RESTORE, RETRY, Awaited, Orders

if TYPE_CHECKING:
    from harebell.base.message import Message
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.front.common.settings import Settings
    from harebell.front.operations.caller import Caller

FindCaller = Callable[[Orders], "Caller | None"]
"""Returns whose rights count for a job; None when that user is gone."""
_OF_A_BACKEND = "backend"


class JobRights:
    """The rights of the user of one job; see `harebell.model.jobs.Rights`.

    Args:
        orders: what the job has to do.
        settings: what connections are configured with.
        registry: knows what is short.
        find: returns the user and vhost.
    """

    def __init__(
        self, orders: Orders, settings: Settings, registry: ConnectionRegistry, find: FindCaller
    ) -> None:
        self._orders = orders
        self._settings = settings
        self._registry = registry
        self._find = find

    def who(self) -> str:
        """Return what tells the user from another one of that name: a hash of the password's hash.

        Within a process the user is the one that `find` returns.
        """
        caller = self._find(self._orders)
        if caller is None or not self._orders.user:
            return ""
        # The broker has no password of such a user: its backend decides again for each slice.
        if isinstance(caller.user, RemoteUser):
            return _OF_A_BACKEND
        return sha256(caller.user.password_hash.encode()).hexdigest()

    def stop(self) -> str:
        """Return why the job has to stop; "" if it may go on.

        Raises:
            Awaited: a backend has to be asked.
        """
        orders, caller = self._orders, self._find(self._orders)
        if caller is None:
            return f"there is no user '{orders.user}' any more, who has started it"
        try:
            check(caller, READ, QUEUE, orders.queue)
            if orders.verb != REMOVE:
                writable_exchange(caller, orders.exchange, is_internal)
        except Undecided as undecided:
            raise _awaited(caller, undecided) from None
        except HarebellError as error:
            return str(error)
        return ""

    def wait(self) -> bool:
        """Return whether publishers have to wait now."""
        return bool(self._registry.publishers.short_of())

    def leave(self, message: Message) -> str:
        """Return why a message may not be published as it is; "" if it may.

        Raises:
            Awaited: a backend has to be asked.
        """
        caller, size = self._find(self._orders), len(message.body)
        if caller is None:
            return self.stop()
        try:
            if size > self._settings.message_max:
                raise too_large(size, self._settings.message_max)
            check_topic(caller, WRITE, message.exchange, message.routing_key)
            if self._orders.verb not in (RETRY, RESTORE) or self._orders.edits:
                # A retry returns messages to where their publishers have sent them, unless it
                # changes them.
                check_user_id(property_of(message, "user_id"), caller.user)
        except Undecided as undecided:
            raise _awaited(caller, undecided) from None
        except HarebellError as error:
            return str(error)
        return ""


def _awaited(caller: Caller, undecided: Undecided) -> Awaited:
    """Return what a job waits for; refusals of before are forgotten, as they have been used."""
    caller.user.settled()
    return Awaited(undecided.ask)

"""A virtual host and callers of operations without any connection, as an HTTP API has them."""

from __future__ import annotations

from harebell.auth.permissions import Permissions
from harebell.auth.users import User
from harebell.front.operations.caller import Caller
from tests.unit.front.amqp_0_9_1.world import World


class Operations:
    """The vhost "/" of a broker, with a log."""

    def __init__(self) -> None:
        self.broker = World().broker
        self.vhost = self.broker.vhosts["/"]
        self.log: list[tuple[str, str]] = []

    def caller(
        self, configure: str = "", write: str = "", read: str = "", owner: object = None
    ) -> Caller:
        """A caller whose user may do so much; the patterns are of names."""
        permissions = {"/": Permissions(configure, write, read)}
        user = User("ann", "", False, (), permissions)
        return Caller(self.vhost, user, owner, lambda level, text: self.log.append((level, text)))

    def everything(self, owner: object = None) -> Caller:
        """A caller who may do everything."""
        return self.caller(".*", ".*", ".*", owner)

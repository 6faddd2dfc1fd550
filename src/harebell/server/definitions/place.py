"""The broker that definitions are taken from or brought to."""

from __future__ import annotations

from dataclasses import dataclass

from harebell.auth.users import Users
from harebell.base.ports import Definitions
from harebell.model.broker import Broker


@dataclass(frozen=True, slots=True)
class Place:
    """A broker with its users.

    Args:
        broker: its vhosts.
        users: who may log in.
        rows: where users and permissions are written down.
    """

    broker: Broker
    users: Users
    rows: Definitions

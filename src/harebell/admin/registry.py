"""Every command of the control socket; each noun has a file of its own."""

from __future__ import annotations

from harebell.admin.commands import (
    connections,
    definitions,
    exchanges,
    leases,
    limits,
    parameters,
    policies,
    queues,
    stages,
    topic_permissions,
    transactions,
    users,
    vhosts,
)
from harebell.admin.context import Command

COMMANDS: dict[str, Command] = {
    name: command
    for module in (
        *(users, topic_permissions, vhosts, limits, policies, parameters, definitions),
        *(queues, exchanges, connections, transactions, leases, stages),
    )
    for name, command in module.COMMANDS.items()
}
"""Every command by its name, such as `users.add`."""

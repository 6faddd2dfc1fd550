"""What a broker has when it starts: what was declared before, its users, and what a new one gets.

The order matters: what the store has, then the users, then the definitions file, which may have
changed since, then what a broker without users gets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.admin.accounts import load_users, make_default_user
from harebell.auth.permissions import Permissions
from harebell.cluster.process_config import loads_definitions
from harebell.config import Config, default_password
from harebell.model.settings.ceilings import Ceilings
from harebell.server.new_vhosts import NewVHosts

if TYPE_CHECKING:
    from harebell.auth.users import Users
    from harebell.model.broker import Broker
    from harebell.server.disk.storage import Storage


def restore_broker(
    broker: Broker,
    storage: Storage,
    config: Config,
    write: Callable[[str, str], None],
    *,
    has_default_vhost: bool = True,
) -> None:
    """Restore the declared vhosts, queues, exchanges and bindings.

    Args:
        broker: the broker, which is empty.
        storage: the disk, or the database.
        config: the limits of the broker.
        write: writes a log line of a level.
        has_default_vhost: whether a new broker has a vhost.
    """
    storage.begin()
    if not has_default_vhost:
        broker.leave_default_vhost()
    for sentence in broker.restore():
        write("error", sentence)
    if broker.prepared:
        write("info", f"{broker.prepared} prepared transactions: `harebell transactions`")
    for weaker in broker.weaker():
        write("warning", f"a confirm does not wait for the disk in all queues: {weaker}")
    broker.limit(
        Ceilings(
            config.vhost_max or None,
            config.cluster_queue_limit or None,
            config.cluster_exchange_limit or None,
        )
    )


def restore_users(
    broker: Broker,
    users: Users,
    storage: Storage,
    config: Config,
    write: Callable[[str, str], None],
    *,
    has_users: bool = True,
) -> NewVHosts:
    """Restore the users, import the definitions file, and make what a new broker has.

    Args:
        broker: the broker, with what it had before.
        users: gets the users.
        storage: the disk, or the database.
        config: the loopback users, the definitions file and the defaults of a new broker.
        write: writes a log line of a level.
        has_users: whether the users of the cluster are in this store; they come from store 1 if
            not.

    Returns:
        What a vhost gets when it is made.
    """
    definitions = storage.definitions
    users.restrict_to_loopback(config.loopback_users)
    load_users(users, definitions)
    # "/" is there before a new broker has any users.
    vhosts_before = set(broker.vhosts) if users.all() else set[str]()
    new_vhosts = NewVHosts(config, users, definitions)
    if loads_definitions(config):
        # Imported only if it is used: it loads the parser of RabbitMQ's JSON.
        from harebell.admin.definitions.entries import ImportTarget
        from harebell.server.loaded_definitions import load_definitions

        load_definitions(ImportTarget(broker, users, definitions), config, write)
    if not has_users:
        broker.vhost_added = new_vhosts.added
        return new_vhosts
    if not users.all() and config.default_vhost not in broker.vhosts:
        broker.add_vhost(config.default_vhost)
    make_default_user(
        users,
        definitions,
        config.default_user,
        default_password(config),
        vhost=config.default_vhost,
        tags=config.default_user_tags,
        permissions=Permissions(
            config.default_permissions_configure,
            config.default_permissions_write,
            config.default_permissions_read,
        ),
    )
    # After the default user, which is made only if there are no users yet. A vhost may make some.
    for name, vhost in broker.vhosts.items():
        if name not in vhosts_before:
            new_vhosts.added(vhost)
    broker.vhost_added = new_vhosts.added
    return new_vhosts

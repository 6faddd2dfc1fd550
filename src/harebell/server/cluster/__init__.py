"""A cluster of several stores: each has an owner, and the owners work together.

One process per store
    supervisor.py         starts the processes of a machine
    process_config.py     the configuration of each
    stores.py             numbers of stores, and their schemas, directories and addresses
    cluster.py            what an owner does for and with the others: it makes most of the below

What all know
    tables.py             the tables that all stores share
    cluster_directory.py  what a process knows of them; store_directory.py: what commands use of it
    users_copy.py         the users of store 1, for the other owners

Clients, whose vhost may be in another store
    recorder.py           keeps what a client sends until it names its vhost
    client_handover.py    passes it on to the owner of the vhost
    handover_service.py   serves a client that was passed on
    local_handover.py     passes the socket itself to a process of the same machine

Commands
    commands.py           where a command (call.py) runs; definitions_import.py runs one in parts
    command_caller.py     sends one to another owner, over a connection of command_links.py
    command_service.py    runs one for another owner
    standby_commands.py   lets an owner run one that a standby was asked for
    draining.py           gives the stores of a machine away

Limits of users and of the cluster
    usage_service.py      counts what this owner has, and sends it; usage_wire.py has the format
    usage_elsewhere.py    what the other owners have

Between brokers
    link.py, link_tls.py  connections at the cluster port
    command_wire.py       the format of commands, event_wire.py that of events and log lines
    event_sender.py       sends events and log lines to store 1; event_service.py publishes them
    usage_service.py      sends what counts towards limits; usage_elsewhere.py adds it up

`docs/internals/cluster.md` has the reasons.
"""

"""A cluster of several stores: each has an owner, and the owners work together.

One process per store
    supervisor.py         starts the processes of a machine
    process_config.py     the configuration of each
    stores.py             numbers of stores, and their schemas, directories and addresses
    cluster.py            what an owner does for and with the others: it makes most of the below
    limits.py             limits between the brokers

What all know
    shared.py             what all stores share: tables in PostgreSQL, or a file in workers/
    cluster_directory.py  what a process knows of them
    users_copy.py         the users of store 1, for the other owners

Clients, whose vhost may be in another store
    forwarder.py          passes clients on to an owner, of a standby too (postgresql/relay.py)
    client_handover.py    keeps what a client sends until it names its vhost, and passes it on to
                          the owner of the vhost, which serves it
    local_handover.py     passes the socket itself to a process of the same machine

Commands
    commands.py           where a command runs; definitions_import.py runs one in parts
    command_wire.py       the format of one on its way
    command_caller.py     sends one to another owner, for a broker that stands by, too
    command_service.py    runs one for another owner
    draining.py           gives the stores of a machine away

What owners tell each other
    events.py             events and log lines, which the owner of store 1 publishes
    usage.py              what counts towards the limits of users and of the cluster
    metrics.py            samples for the document of a worker
    backup.py             the stores of other workers in a backup

Between brokers
    link.py               connections at the cluster port, their proofs and certificates
    lines.py              the lines of JSON on them, for all services but that of clients

`docs/internals/cluster.md` has the reasons.
"""

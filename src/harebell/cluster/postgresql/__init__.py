"""Storage in PostgreSQL: one broker at a time owns the store, and others stand by.

    database.py            connections, and what is wrong with a server
    host_order.py          which host of the URL is tried first
    tables.py              the tables of a store
    shared_tables.py       the tables that all stores of a cluster share
    ownership.py           claims, the lease, and its end
    log_reader.py          the log, from PostgreSQL into a directory
    fenced_log_writer.py   the log, from the group commit into PostgreSQL, by the epoch of the owner
    log_sizes.py           the size of each generation of the log
    standby_lag.py         how far a standby is behind the owner
    prepared_statement.py  the statement of the log, without the work of the driver
    owned_store.py         the store of an owner: cache, recorded changes, commits
    step_down.py           the end of the service, before another broker can own the store
    standby.py             follow the log, and claim the store
    standby_lag.py         how far the others are behind, as their owner sees it
    standby_service.py     what a broker serves meanwhile: relay.py, standby_metrics.py
    addresses.py           where brokers accept AMQP
    figures.py             figures for status and metrics
    store_copy.py          `harebell store copy`
    doctor_check.py        what `harebell doctor` finds

`docs/internals/postgresql.md` has the reasons.
"""

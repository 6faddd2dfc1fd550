"""Storage in PostgreSQL: one broker at a time owns the store, and others stand by.

    database.py      connections, and what is wrong with a server
    tables.py        the tables of a store
    ownership.py     claims, the lease, and its end
    log_reader.py    the log, from PostgreSQL into a directory
    log_writer.py    the log, from the group commit into PostgreSQL
    standby.py       wait until this broker owns the store

`docs/internals/postgresql.md` has the reasons.
"""

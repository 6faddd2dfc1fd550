"""Several stores in one data directory: `workers = N`, without a database.

    DATA_DIR/                store 1
        stores/              there is no such directory with one store
            LOCK             held by the supervisor, or by those who change the layout
            number           how many stores there are
            shared.sqlite    what the stores share: see `shared_file.py`
            wake-1.sock      wakes the process of store 1 when that has changed
            2/               store 2, a data directory like any other
            3/               ...

    layout.py               how many stores a directory has, and whether that is configured
    shared_file.py          what the stores share
    worker.py               the process of a store, as the other processes know it
    division.py             makes several stores of one, and one of several
    definitions_parts.py    the part of each store of the definitions that are loaded

`docs/internals/workers.md` has the reasons.
"""

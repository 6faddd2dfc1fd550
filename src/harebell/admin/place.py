"""Where a command runs in a cluster with several stores, each of which has an owner.

A command with a vhost runs at the owner of the vhost's store. What other commands do is said at
their noun or at the command, see `Noun` and `Noun.command`. With one store all of them run here.
"""

from __future__ import annotations

HERE = "here"
"""In the process that was asked: it is about the process, or every owner knows the answer."""
FIRST = "first"
"""At the owner of store 1, which has what all stores share."""
SHARED = "shared"
"""There too; the users are copied to the other owners then."""
VHOST = "vhost"
"""At the owner of the vhost's store."""
NEW_VHOST = "new vhost"
"""At the owner of the vhost's store, which is chosen before if the vhost is a new one."""
END_OF_VHOST = "end of vhost"
"""At the owner of the vhost's store; the cluster forgets the vhost then."""
STORE = "store"
"""At the owner of the store that its argument "store" names."""
EVERYWHERE = "everywhere"
"""At all owners, whose answers are put together."""
WORKERS = "workers"
"""At all owners, if they are workers of one broker, which have one configuration; else here."""
ANYWHERE = "anywhere"
"""At the owner of the object: owners are asked one by one until one has it."""
IN_PARTS = "in parts"
"""At all owners that a document is about, with the part of each."""
PLACES = (
    *(HERE, FIRST, SHARED, VHOST, NEW_VHOST, END_OF_VHOST, STORE),
    *(EVERYWHERE, WORKERS, ANYWHERE, IN_PARTS),
)

ROWS = "rows"
"""Rows follow each other, in the order of the noun."""
EACH_ONCE = "each once"
"""Rows follow each other; equal ones are left out."""
COMMON = "common"
"""Rows that all owners have."""
SUMS = "sums"
"""Numbers are added."""
TOTALS = "totals"
"""The overview: its numbers are added."""
OLDEST = "oldest"
"""The answer with the oldest message."""
NODES_BY_NAME = "nodes by name"
"""Rows by name; of two rows the one with more members."""
FULLEST = "fullest"
"""The answer that says most."""
CHECK = "check"
"""A check that has to succeed at every owner that there is."""
CHECK_OF_ALL = "check of all"
"""A check that also fails when a store has no owner."""
NEWEST = "newest"
"""Rows of all owners in the order of the noun, and of these the last ones, up to the limit."""
SECTIONS = "sections"
"""Definitions: the lists of all owners; users and global parameters once."""
MERGES = (
    *(ROWS, EACH_ONCE, COMMON, SUMS, TOTALS, OLDEST, NODES_BY_NAME, FULLEST),
    *(CHECK, CHECK_OF_ALL, NEWEST, SECTIONS),
)

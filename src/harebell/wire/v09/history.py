"""The class history: which eras the numbers of a queue belong to.

docs/protocols/extensions.md explains it.
"""

from __future__ import annotations

NAME = "history"
VERSION = 1
CLASS_ID = 0xF005

TABLE = """
history 61445
  ask             10  C   -> ask-ok: shortstr queue group
    "Ask for the eras of a queue's positions; with a lease group, of its claim numbers."
  ask-ok          11  S   : shortstr generation, longstr eras
    "The identity of the log, and the eras (`harebell.base.eras`) in ASCII, the oldest first."
"""

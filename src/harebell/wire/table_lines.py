"""Read the lines of the tables in which the versions of AMQP are written.

    - test                       removes classes of the version below
    queue 50                     a class and its number
      delete 40 C -> delete-ok:  an entry of the class; deeper indentation continues its line
          shortstr queue
          "Delete a queue."      what the entry is for, at its end: the docstring of its type
      - unbind                   removes entries of the class

`#` begins a comment. `harebell.wire.v09.spec` and `harebell.wire.v010.spec` read the entries, and
make a type of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

REMOVE = "-"
"""Begins a line that removes what the version below has."""


class Entry(NamedTuple):
    """An entry of a table, or a line that removes some.

    Args:
        class_name: of the entry; "" in a line that removes classes.
        class_id: the number of the class; 0 in a line that removes classes.
        line: the entry, joined to one line.
        purpose: its last part in quotation marks, without them; "" without one.
    """

    class_name: str
    class_id: int
    line: str
    purpose: str


def table_lines(table: str) -> Iterator[Entry]:
    """Yield every entry of a table."""
    class_name, class_id, line = "", 0, ""
    for raw in table.splitlines():
        text = raw.partition("#")[0].rstrip()
        if not text:
            continue
        indent = len(text) - len(text.lstrip())
        if indent > 2:
            line += " " + text.strip()
            continue
        # An entry is complete only when the next line begins another one.
        if line:
            yield _entry(class_name, class_id, line)
            line = ""
        if indent:
            line = text.strip()
        elif text.startswith(REMOVE):
            class_name, class_id, line = "", 0, text
        else:
            class_name, number = text.split()
            class_id = int(number)
    if line:
        yield _entry(class_name, class_id, line)


def _entry(class_name: str, class_id: int, line: str) -> Entry:
    # Only the first quotation mark begins the purpose: `""` may stand in it for an empty name.
    line, _, purpose = line.partition(' "')
    return Entry(class_name, class_id, line, purpose.removesuffix('"'))

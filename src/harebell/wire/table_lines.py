"""Read the lines of the tables in which the versions of AMQP are written.

    - test                       removes classes of the version below
    queue 50                     a class and its number
      delete 40 C -> delete-ok:  an entry of the class; deeper indentation continues its line
          shortstr queue
      - unbind                   removes entries of the class

`#` begins a comment. What an entry says is read by `harebell.wire.v09.spec` and
`harebell.wire.v010.spec`.
"""

from __future__ import annotations

from collections.abc import Iterator

REMOVE = "-"
"""Begins a line that removes what the version below has."""


def table_lines(table: str) -> Iterator[tuple[str, int, str]]:
    """Yield class name, class number and the joined line of every entry of a table.

    A line that removes entries has their class too; one that removes classes has "" and 0.
    """
    class_name, class_id, line = "", 0, ""
    for raw in table.splitlines():
        text = raw.partition("#")[0].rstrip()
        if not text:
            continue
        indent = len(text) - len(text.lstrip())
        if indent > 2:
            line += " " + text.strip()
            continue
        if line:
            yield class_name, class_id, line
            line = ""
        if indent:
            line = text.strip()
        elif text.startswith(REMOVE):
            class_name, class_id, line = "", 0, text
        else:
            class_name, number = text.split()
            class_id = int(number)
    if line:
        yield class_name, class_id, line

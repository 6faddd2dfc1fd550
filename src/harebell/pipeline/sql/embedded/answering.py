"""The process that answers one question of the web interface: `python -m` this, FILE DESCRIPTOR.

The question comes by standard input and its answer goes to standard output, both as JSON. The file
descriptor is that of a connection to the broker, which is the user's who asks.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from typing import Any

from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError

_EXACT = 2**53
"""Whole numbers that JavaScript has, too."""
_CELL_CHARACTERS = 2_000
_DEPTH = 8


def main() -> None:
    """Answer the question."""
    question = json.load(sys.stdin)
    seconds = int(question["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (2 * seconds, 2 * seconds))
    resource.setrlimit(resource.RLIMIT_DATA, (question["process_bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    os.nice(10)
    begun = time.monotonic()
    try:
        answer = _answer(question, int(sys.argv[1]))
        answer["seconds"] = round(time.monotonic() - begun, 3)
    except PipelineError as error:
        answer = {"problem": str(error)}
    except MemoryError:
        answer = {"problem": "the question needs more memory than a question may have"}
    except Exception as error:  # without an answer the broker would blame the memory
        answer = {"problem": f"it cannot be answered: {' '.join(str(error).split())}"}
    sys.stdout.write(json.dumps(answer))


def _answer(question: dict[str, Any], descriptor: int) -> dict[str, Any]:
    from harebell.pipeline.sql.embedded.engine import Engine
    from harebell.pipeline.sql.embedded.kinds import NeedsSpark
    from harebell.pipeline.sql.selections import SelectStatement
    from harebell.pipeline.sql.verbs import SESSION, understand

    sql = question["statement"]
    statement = understand(sql)
    first = sql.split(maxsplit=1)[0].upper()
    if not isinstance(statement, SelectStatement) or first in SESSION:
        raise PipelineError("a page asks with SELECT: `harebell sql` runs other statements")
    url = URL(
        username=question["user"],
        password="",
        vhost=question["vhost"],
        name="harebell sql of a page",
        descriptor=descriptor,
    )
    with Engine(memory=question["memory"], threads=1) as engine:
        try:
            found = engine.answer(statement, url, question["rows"])
        except NeedsSpark as needed:
            raise PipelineError(f"{needed}: `harebell sql` asks Spark for it") from None
    room = question["answer_bytes"] - len(json.dumps(found.columns)) - 1_000
    rows: list[Any] = []
    for row in found.rows:
        made = [_plain(value) for value in row]
        room -= len(json.dumps(made)) + 2
        if room < 0:
            break
        rows.append(made)
    more = found.more or len(rows) < len(found.rows)
    return {"columns": list(found.columns), "rows": rows, "more": more, "read": found.read}


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON has it: long texts are cut, and long numbers are texts."""
    if depth > _DEPTH:
        return "..."
    if isinstance(value, dict):
        return {str(name): _plain(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return value if len(value) <= _CELL_CHARACTERS else value[:_CELL_CHARACTERS] + "..."
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < _EXACT else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    return str(value)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Write the blocking API of the client from its asyncio API; a test fails if it is not up to date.

    .venv/bin/python tools/blocking_api.py

What a channel, a consumer or a requester does is written once, in `src/harebell/client/aio`. Here
`await` is removed, and words that only one of the two APIs needs are replaced. Lines that end in
`# asyncio` are left out. How each API waits is not made but written: `aio/waits.py` and
`blocking/waits.py`, `connection_waits.py` and `transport.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "src" / "harebell" / "client"
FILES = ("channel.py", "connection.py", "consumer.py", "requests.py")
HEADER = "# Made from ../aio/{name} by tools/blocking_api.py: change that file and run the tool.\n"

TEXTS = (
    (
        """Publish a message; await the answer now, later, or together with others.

        It does not wait for the socket either: await one of the answers now and then.
""",
        """Publish a message; call `wait()` for the answer later.

        Output is buffered, and written when there is enough of it or with the next call that waits;
        `Connection.flush()` writes it now.
""",
    ),
    (
        """\
    It subscribes with the first iteration or with `async with`. It ends with `cancel()`, with the
    end of the `async with` block, or when it is garbage collected.
""",
        """\
    It ends with `cancel()`, with the end of a `with` block, or when it is garbage collected, as
    after a `break` out of `for message in channel.consume(...)`.
""",
    ),
    # A blocking connection belongs to one thread at a time, so no other call opens the channel.
    ("asyncio.Lock()", "nullcontext()"),
    ("import asyncio\nfrom typing", "from contextlib import nullcontext\nfrom typing"),
    ("\n    Any number of tasks may call concurrently.\n", ""),
    ("the verbs of AMQP as coroutines", "the verbs of AMQP as methods"),
    (
        """

    Attributes:
        blocked: set while the broker blocks publishers, because it is short of memory or disk.
        unblocked: set while it does not.
    """,
        "",
    ),
)
"""Passages that name the way to wait, under asyncio and in the blocking API."""

WORDS = (
    (r"^.*  # asyncio\n", ""),
    (r"  # noqa: ASYNC109.*", ""),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bIterable\[Item\] \| AsyncIterable\[Item\]", "Iterable[Item]"),
    (r"\bAsyncItera(ble|tor)\b", r"Itera\1"),
    (r"\bharebell\.client\.aio\b", "harebell.client.blocking"),
    (r"\bawaited\b", "waited"),
    (r"\bCoroutine\[Any, Any, T\]", "T"),
    (r"\bAsyncTransport\b", "BlockingTransport"),
    (r"^import asyncio$", "import time"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bconnection\.touch\(\)", "connection.flush_some()"),
)
"""Regular expressions of code, and their replacements."""


class Unused(Exception):
    """A passage that is to be replaced is in none of the files any more."""


def blocking_api() -> dict[Path, str]:
    """Return the texts of the files that are made.

    Raises:
        Unused: a passage of TEXTS is in none of the files.
    """
    sources = {name: (CLIENT / "aio" / name).read_text() for name in FILES}
    for passage, _ in TEXTS:
        if not any(passage in text for text in sources.values()):
            raise Unused(passage)
    return {CLIENT / "blocking" / name: _made(name, text) for name, text in sources.items()}


def _made(name: str, text: str) -> str:
    for there, here in TEXTS:
        text = text.replace(there, here)
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    for step in (["check", "--fix-only", "--select", "F401,I001"], ["format"]):
        text = _ruff(step, CLIENT / "blocking" / name, text)
    return HEADER.format(name=name) + text


def _ruff(step: list[str], path: Path, text: str) -> str:
    command = [sys.executable, "-m", "ruff", *step, "--quiet", "--stdin-filename", str(path), "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    for path, text in blocking_api().items():
        path.write_text(text)

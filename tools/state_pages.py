"""Write the page of state machines from their tables: `tools/state_pages.py`.

With --check it writes nothing, and fails when the page differs from what it would write.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harebell.front.amqp_0_9_1.channel_states import CHANNEL
from harebell.front.amqp_0_9_1.connection_states import CONNECTION
from harebell.front.amqp_0_10 import session_states
from harebell.front.amqp_1_0 import connection_states as connection_states_1_0
from harebell.front.common.state_table import IGNORED, Fault

PAGE = Path(__file__).resolve().parent.parent / "docs" / "internals" / "states.md"
_HEAD = """# States of connections, channels and sessions

`tools/state_pages.py` writes this page from the tables that the code decides by. A table has an
entry for every pair of state and event: the state that usually follows, an error, or nothing where
the peer did not know of the end yet. Tests send every event in every state.
"""
_MACHINES = (
    ("Connection of AMQP 0-9-1", "amqp_0_9_1/connection_states.py", CONNECTION),
    ("Channel of AMQP 0-9-1", "amqp_0_9_1/channel_states.py", CHANNEL),
    ("Channel of AMQP 0-10", "amqp_0_10/session_states.py", session_states.CHANNEL),
    ("Connection of AMQP 1.0", "amqp_1_0/connection_states.py", connection_states_1_0.CONNECTION),
)

_FAULTS = (Fault, connection_states_1_0.ConditionFault)
_Table = Mapping[Any, Mapping[Any, Any]]


def _drawing(table: _Table) -> Iterator[str]:
    """Draw an arrow for each event that leads to a state."""
    from_columns = max(len(state.value) for state in table)
    event_columns = max(len(event.value) for row in table.values() for event in row)
    for state, row in table.items():
        for event, outcome in row.items():
            if not isinstance(outcome, _FAULTS) and outcome is not IGNORED:
                arrow = f" {event.value} ".ljust(event_columns + 3, "-")
                yield f"{state.value.ljust(from_columns)} --{arrow}-> {outcome.value}"


def _rejections(table: _Table) -> Iterator[str]:
    """Yield a row for each error and state, with the events that cause it."""
    for state, row in table.items():
        events: dict[Any, list[enum.Enum]] = {}
        for event, outcome in row.items():
            if isinstance(outcome, _FAULTS) or outcome is IGNORED:
                events.setdefault(outcome, []).append(event)
        for outcome, causes in events.items():
            shown = "ignored" if outcome is IGNORED else f"{outcome.code} `{outcome.text}`"
            # Most of a row has the same outcome: name the events only where they are few.
            names = ", ".join(f"`{event.value}`" for event in causes)
            rest = 2 * len(causes) > len(row)
            yield f"| {state.value} | {'every other event' if rest else names} | {shown} |"


def page() -> str:
    """Return the page."""
    lines = [_HEAD]
    for title, module, table in _MACHINES:
        lines += [f"## {title}", "", f"From `front/{module}`.", ""]
        lines += ["```", *_drawing(table), "```", ""]
        lines += ["| state | event | outcome |", "|---|---|---|", *_rejections(table), ""]
    return "\n".join(lines)


def main() -> int:
    """Write or check the page; returns the exit code."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
        return 0
    if PAGE.read_text() == page():
        return 0
    print(f"{PAGE.name} is not what the tables say: run tools/state_pages.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())

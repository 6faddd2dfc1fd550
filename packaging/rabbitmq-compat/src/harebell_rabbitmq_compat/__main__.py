"""`python -m harebell_rabbitmq_compat TOOL ARGUMENT...`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from harebell_rabbitmq_compat import main

TOOLS: dict[str, Callable[[], int]] = {
    "rabbitmqctl": main.rabbitmqctl,
    "rabbitmq-diagnostics": main.rabbitmq_diagnostics,
    "rabbitmq-plugins": main.rabbitmq_plugins,
    "rabbitmq-queues": main.rabbitmq_queues,
    "rabbitmq-streams": main.rabbitmq_streams,
    "rabbitmq-upgrade": main.rabbitmq_upgrade,
    "rabbitmqadmin": main.rabbitmqadmin,
    "rabbitmq-server": main.rabbitmq_server,
}
"""The tools by name."""

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TOOLS:
        sys.exit(f"usage: python -m harebell_rabbitmq_compat {'|'.join(TOOLS)} ARGUMENT...")
    tool = sys.argv.pop(1)
    sys.argv[0] = tool
    sys.exit(TOOLS[tool]())

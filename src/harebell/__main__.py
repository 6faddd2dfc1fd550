"""The command line: `harebell`, and `python -m harebell`.

Ctrl-C ends it without a traceback, also while modules are imported: a KeyboardInterrupt may come
before there is a command that catches it, so it is caught around the import, too.
"""

from __future__ import annotations

import sys

from harebell.cli.limits import EXIT_INTERRUPTED


def main() -> None:
    """Run the command line."""
    try:
        from harebell.cli.main import harebell
        from harebell.cli.output import guarded

        with guarded():
            harebell.main(prog_name="harebell")
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()

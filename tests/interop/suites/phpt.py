"""Runs tests in PHP's format .phpt, and prints when each begins and how it ends.

    python phpt.py <seconds for each> <file>...

PHP's own runner comes with the headers of one minor version; the format is simple.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_MATCHES = {
    "%s": r"[^\n]+", "%S": r"[^\n]*", "%a": ".+?", "%A": ".*?", "%w": r"\s*", "%i": r"[+-]?\d+",
    "%d": r"\d+", "%x": "[0-9a-fA-F]+", "%c": ".",
    "%f": r"[+-]?\.?\d+\.?\d*(?:[Ee][+-]?\d+)?",
}  # fmt: skip
_FLAGS = ("display_errors=1", "error_reporting=32767", "log_errors=0", "html_errors=0")


def sections(text: str) -> dict[str, str]:
    """The parts of a test by their names."""
    return dict(re.findall(r"^--([A-Z_]+)--\n(.*?)(?=^--[A-Z_]+--$|\Z)", text, re.M | re.S))


def expression(expected: str) -> str:
    """The regular expression of a section EXPECTF."""
    parts = re.split(r"(%r.*?%r|%[a-zA-Z])", expected)
    return "".join(
        part[2:-2] if part.startswith("%r") else _MATCHES.get(part, re.escape(part))
        for part in parts
    )


def _run(test: Path, code: str, settings: list[str], seconds: float) -> str:
    # Beside the test: its file includes others from there, and its name is in what it prints.
    script = test.with_suffix(".php")
    script.write_text(code, "latin-1")
    flags = [word for each in (*_FLAGS, *settings) for word in ("-d", each)]
    try:
        done = subprocess.run(
            ["php", *flags, str(script)], cwd=test.parent, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        said = done.stdout
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"") + b"\ntook too long"
    return said.decode("latin-1").replace("\r\n", "\n").strip()


def run(test: Path, seconds: float) -> tuple[str, str]:
    """Run one test: "passed", "failed" or "skipped", and what it printed."""
    parts = sections(test.read_text("latin-1").replace("\r\n", "\n"))
    settings = parts.get("INI", "").split("\n")
    settings = [line.strip() for line in settings if line.strip()]
    if _run(test, parts.get("SKIPIF", ""), settings, seconds).lower().startswith("skip"):
        return ("skipped", "")
    said = _run(test, parts["FILE"], settings, seconds)
    if "EXPECT" in parts:
        same = said == parts["EXPECT"].strip()
    else:
        same = bool(re.fullmatch(expression(parts["EXPECTF"].strip()), said, re.S))
    return ("passed" if same else "failed", said)


def main(seconds: float, tests: list[Path]) -> None:
    """Run the tests one after the other."""
    for test in tests:
        sys.stdout.write(f"began {test.stem}\n")
        became, said = run(test, seconds)
        sys.stdout.write(f"{became} {test.stem}\n")
        if became == "failed":
            sys.stdout.write("".join(f"  {line}\n" for line in said.split("\n")))
        sys.stdout.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]), [Path(name) for name in sys.argv[2:]])

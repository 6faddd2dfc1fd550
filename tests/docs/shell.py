"""Runs the commands of a documentation block as a reader would, and compares what they print.

In a `console` block a line that begins with `$ ` is a command and the lines below it are what it
prints, with `...` for what differs from run to run, or by itself for rows of other pages. In a `sh`
block every line is a command. A `yaml` block that begins with `# name.yaml` is that file, where the
commands below it run. The reader's broker on port 5672 is the test's own on another port, and files
in `/tmp` are in the directory of the other files, for somebody else may run the same commands.
`harebell serve` is started, has to become ready, and is stopped.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.markdown import ROOT, Block
from tests.running import RunningBroker, command, environment

_SERVE = re.compile(r"((?:[A-Z_]+=\S+ )*)harebell serve\b(.*)")
_COMMAND_SECONDS = 600
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d .*? \[[a-z]+\] <")
_FILE = re.compile(r"# ([\w-]+\.yaml)\n")


@dataclass
class Step:
    """A command of a block.

    Args:
        command: what to type.
        line: where it stands.
        output: the lines it prints; None in blocks that do not show any.
    """

    command: str
    line: int
    output: list[str] | None = field(default=None)


def steps(block: Block) -> list[Step]:
    """The commands of a block."""
    found: list[Step] = []
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        if block.language == "console":
            if line.startswith("$ "):
                found.append(Step(line.removeprefix("$ "), number, []))
            else:
                assert found, f"line {number}: output without a command"
                assert found[-1].output is not None
                found[-1].output.append(line)
        elif line.strip() and not line.startswith("#"):
            found.append(Step(re.sub(r"\s+# .*", "", line.strip()), number))
    return found


def keep_file(block: Block, directory: Path) -> Path | None:
    """Write the file that a block shows; None if it shows none."""
    named = _FILE.match(block.text)
    if named is None:
        return None
    (directory / named[1]).write_text(block.text + "\n")
    return directory / named[1]


def check(step: Step, broker: RunningBroker, files: Path) -> None:
    """Run a command against a broker, in a directory with some files, and compare its output."""
    serving = _SERVE.fullmatch(_placed(step.command, files))
    if serving is not None:
        printed = _serve(serving[1].split(), shlex.split(serving[2]))
        wanted = [re.sub(r":\d{4,5}$", ":...", line) for line in step.output or []]
    else:
        printed = _run(_placed(step.command, files), broker, files)
        wanted = [line.replace(":5672", f":{broker.port}") for line in step.output or []]
    wanted = [_placed(line, files) for line in wanted]
    if step.output is not None:
        expression = "".join(map(_line, wanted))
        shown = "".join(f"{_evened(line)}\n" for line in printed)
        assert re.fullmatch(expression, shown), f"{step.command} prints: {printed}"


def _line(pattern: str) -> str:
    """The regular expression of a line: `...` is any text, or by itself any number of lines."""
    if pattern == "...":
        return r"(?:.*\n)*"
    return ".*".join(re.escape(part) for part in _evened(pattern).split("...")) + r"\n"


def _evened(line: str) -> str:
    """A line of a table, whatever the widths of its columns: other rows may be wider."""
    return re.sub(r" {2,}", "  ", line).rstrip()


def _placed(text: str, files: Path) -> str:
    """A text with the directory of the files in place of the system's temporary one."""
    return re.sub(r"(?<![\w/.])/tmp/", f"{files}/", text)


def _run(text: str, broker: RunningBroker, files: Path) -> list[str]:
    about = {
        "HAREBELL_URL": broker.address(),
        "HAREBELL_DATA_DIR": str(broker.data_dir),
        "HAREBELL_PIPELINES": str(files / "registry"),
        "PATH": f"{Path(command()).parent}:/usr/bin:/bin",
        # RabbitMQ's tools are a distribution of their own, which is not installed for the tests.
        "PYTHONPATH": str(ROOT / "packaging" / "rabbitmq-compat" / "src"),
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text.replace(":5672", f":{broker.port}")],
        capture_output=True,
        text=True,
        cwd=files,
        env=environment(about),
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{text} fails with {done.returncode}: {done.stderr}"
    return done.stdout.splitlines()


def _serve(variables: list[str], flags: list[str]) -> list[str]:
    """Start a broker as shown, except for its port and its address, and stop it."""
    env: Mapping[str, str] = dict(variable.split("=", 1) for variable in variables)
    given = [flag if flag != "0.0.0.0" else "127.0.0.1" for flag in flags]
    if "--port" in given:
        given[given.index("--port") + 1] = "0"
    broker = RunningBroker(*given, env=env)
    try:
        # Lines of the log go to standard error, which a page does not show.
        printed = [line for line in broker.log.splitlines() if not _LOG_LINE.match(line)]
        assert broker.stop() == 0
    finally:
        broker.stop()
        broker.remove()
    return printed

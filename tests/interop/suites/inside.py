"""Runs suites on one broker; for a process that has a network of its own.

    python -m tests.interop.suites.inside <harebell|rabbitmq> <results> <suite>...

The results are JSON: by suite, by test, whether it passed.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.interop.qpid import inside as qpid
from tests.interop.rabbitmq import RabbitNode
from tests.interop.suites import java, outcomes, phpt
from tests.interop.suites.archives import ROOT
from tests.interop.suites.catalogue import ALONE, PORT, SUITES, Suite
from tests.interop.suites.cleaner import cleaner
from tests.interop.suites.fetch import directory, packages, source
from tests.interop.suites.steering import Steered, SteeredHarebell, SteeredRabbit, steering

_SUITE_SECONDS = 900.0
_TEST_SECONDS = 60
_SCRIPT_SECONDS = 30.0
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_REPORTER = ROOT / "tests" / "interop" / "node" / "report.mjs"


def raise_loopback() -> None:
    """Switch the loopback device on, which a new network has switched off.

    Raises:
        RuntimeError: there is a way out of here, so that a suite might reach other hosts.
    """
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if any((Path("/sys/class/net") / name / "address").exists() for name in others):
        raise RuntimeError(f"not a network of our own: it has {', '.join(others)}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack_from("16xh", fcntl.ioctl(control, _SIOCGIFFLAGS, request))
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


@contextmanager
def broker(kind: str, lines: tuple[str, ...] = ()) -> Iterator[Steered]:
    """A broker at the port that everybody expects, on both kinds of loopback.

    Args:
        kind: "harebell" or "rabbitmq".
        lines: of RabbitMQ's configuration.
    """
    if kind == "harebell":
        harebell = SteeredHarebell("--host", "localhost", "--port", str(PORT))
        try:
            yield harebell
        finally:
            harebell.end()
        return
    # Without this node's clients see resets where the broker closes a connection (its default is
    # to drop what was not sent yet).
    settings = [f"listeners.tcp.2 = ::1:{PORT}", "tcp_listen_options.linger.on = false", *lines]
    node = RabbitNode(port=PORT, settings=settings)
    node.start()
    try:
        yield SteeredRabbit(node)
    finally:
        node.stop()


def run(suite: Suite) -> outcomes.Outcomes:
    """Run one suite on whatever listens at the port."""
    for name, text in suite.files.items():
        path = source(suite) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)
    runners = {
        "pytest": _pytest,
        "node": _node,
        "vows": _vows,
        "scripts": _scripts,
        "go": _go,
        "java": _java,
        "phpt": _phpt,
        "qpid": _qpid,
    }
    with cleaner() if suite.cleaned else nullcontext():
        found = runners[suite.runner](suite)
    return {
        test: passed
        for test, passed in found.items()
        if not any(pattern in test for pattern in suite.left_out)
    }


def _pytest(suite: Suite) -> outcomes.Outcomes:
    _own_settings(source(suite))
    report = directory(suite) / "report.xml"
    report.unlink(missing_ok=True)
    words = " and ".join(f"not {word}" for word in suite.left_out)
    flags = ["-q", "-p", "no:cacheprovider", "--junit-xml", str(report)]
    flags += ["--timeout", str(_TEST_SECONDS), *(["-k", words] if words else [])]
    files = [str(path) for pattern in suite.tests for path in _matching(suite, pattern)]
    path = f"{source(suite)}:{packages(suite)}"
    _start(suite, [sys.executable, "-m", "pytest", *flags, *files], {"PYTHONPATH": path})
    return outcomes.from_junit(report.read_text()) if report.exists() else {}


def _own_settings(where: Path) -> None:
    """Keep pytest from taking the settings of this project for those of the suite."""
    sections = {
        "setup.cfg": "[tool:pytest]",
        "pyproject.toml": "[tool.pytest",
        "tox.ini": "[pytest]",
    }
    files = ((where / name, section) for name, section in sections.items())
    if not any(file.exists() and section in file.read_text() for file, section in files):
        (where / "pytest.ini").write_text("[pytest]\n")


def _node(suite: Suite) -> outcomes.Outcomes:
    files = [str(path) for pattern in suite.tests for path in _matching(suite, pattern)]
    flags = ["--test", "--test-concurrency=1", f"--test-timeout={_TEST_SECONDS * 1_000}"]
    flags += [f"--test-reporter={_REPORTER}", "--test-reporter-destination=stdout"]
    return outcomes.from_node(_start(suite, ["node", *flags, *files]))


def _vows(suite: Suite) -> outcomes.Outcomes:
    found: outcomes.Outcomes = {}
    for pattern in suite.tests:
        for file in _matching(suite, pattern):
            said = _start(suite, ["node_modules/.bin/vows", "--json", str(file)])
            found |= {f"{file.name}: {k}": v for k, v in outcomes.from_vows(said).items()}
    return found


def _scripts(suite: Suite) -> outcomes.Outcomes:
    found: outcomes.Outcomes = {}
    for pattern in suite.tests:
        for file in _matching(suite, pattern):
            if any(word in file.name for word in suite.left_out):
                continue
            try:
                done = subprocess.run(
                    ["node", str(file)], cwd=source(suite), env=_environment(suite),
                    stdin=subprocess.DEVNULL, capture_output=True,
                    timeout=_SCRIPT_SECONDS, check=False,
                )  # fmt: skip
                found[file.name] = done.returncode == 0
                said = done.stdout + done.stderr
            except subprocess.TimeoutExpired as late:
                found[file.name] = False
                said = (late.stdout or b"") + (late.stderr or b"") + b"\ntook too long\n"
            with (directory(suite) / "output").open("ab") as output:
                output.write(f"== {file.name}: {found[file.name]}\n".encode() + said)
    return found


def _go(suite: Suite) -> outcomes.Outcomes:
    """Run the tests of packages that lie in a directory as Debian's have it, without modules."""
    root = source(suite) / "usr" / "share" / "gocode"
    own = {"GO111MODULE": "off", "GOPATH": str(root), "GOCACHE": str(directory(suite) / "cache")}
    flags = ["-json", "-count=1", "-tags=integration", f"-timeout={int(_SUITE_SECONDS)}s"]
    packages = [
        str(path.relative_to(root / "src"))
        for each in suite.tests
        for path in _matching(suite, each)
    ]
    return outcomes.from_go(_start(suite, ["go", "test", *flags, *packages], own))


def _java(suite: Suite) -> outcomes.Outcomes:
    """Run each class in a machine of its own, so that one that hangs costs its own tests."""
    where = source(suite)
    listed = [file for each in suite.tests for file in java.classes(where, where / each)]
    files = [file for file in listed if not any(word in file.stem for word in suite.left_out)]
    _start(suite, java.compiler(where, files))
    said = (_start(suite, java.runner(where, file, PORT)) for file in files)
    return outcomes.from_lines("".join(said))


def _phpt(suite: Suite) -> outcomes.Outcomes:
    files = [str(path) for pattern in suite.tests for path in _matching(suite, pattern)]
    command = [sys.executable, str(phpt.__file__), str(_SCRIPT_SECONDS), *files]
    return outcomes.from_lines(_start(suite, command))


def _qpid(suite: Suite) -> outcomes.Outcomes:
    about = [
        "--amqp",
        suite.amqp,
        "--seconds",
        str(_SCRIPT_SECONDS),
        f"guest/guest@127.0.0.1:{PORT}",
    ]
    command = [sys.executable, "-W", "ignore", qpid.__file__, *about, *suite.tests]
    return outcomes.from_qpid(_start(suite, command, {"PYTHONPATH": str(source(suite))}))


def _matching(suite: Suite, pattern: str) -> list[Path]:
    found = sorted(source(suite).glob(pattern))
    if not found:
        raise RuntimeError(f"{suite.label} has nothing that is called {pattern}")
    return found


def _environment(suite: Suite, extra: dict[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, **suite.variables, **(extra or {})}


def _start(suite: Suite, command: list[str], extra: dict[str, str] | None = None) -> str:
    """Run a suite's runner, keep what it says in a file, and return its standard output."""
    with tempfile.TemporaryFile("w+") as output, (directory(suite) / "output").open("a") as errors:
        try:
            subprocess.run(
                command, cwd=source(suite), env=_environment(suite, extra),
                stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                timeout=_SUITE_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            errors.write("took too long\n")
        output.seek(0)
        said = output.read()
        errors.write(said)
    return said


def main(kind: str, results: str, wanted: list[str]) -> None:
    """Run the wanted suites on one kind of broker, and write what they came to."""
    raise_loopback()
    found: dict[str, outcomes.Outcomes] = {}
    for suite in (*SUITES, *ALONE):
        if suite.label not in wanted:
            continue
        (directory(suite) / "output").unlink(missing_ok=True)
        # Each suite has a broker of its own: they leave queues behind.
        with broker(kind, suite.rabbitmq) as steered, steering(steered):
            found[suite.label] = run(suite)
        shutil.copy(directory(suite) / "output", directory(suite) / f"output-{kind}")
        passed = sum(found[suite.label].values())
        sys.stdout.write(f"{kind}: {suite.label}: {passed} of {len(found[suite.label])}\n")
        sys.stdout.flush()
    Path(results).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

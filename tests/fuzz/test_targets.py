"""Every target survives its corpus and a short run of the fuzzer, and the fuzzer finds what is
there."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
ROOT = Path(__file__).parents[2]
SECONDS = int(os.environ.get("HAREBELL_FUZZ_SECONDS", "1"))
HONEST = sorted(set(TARGETS) - {"canary"})
SOAK_SECONDS = int(os.environ.get("HAREBELL_FUZZ_SOAK_SECONDS", "3600"))
"""For the long runs of all targets together."""
SHARE_SECONDS = max(SOAK_SECONDS // len(HONEST), 1)


def _saved(name: str) -> list[Path]:
    return sorted((CORPUS / name).glob("*")) if (CORPUS / name).is_dir() else []


class Fuzzers:
    """Runs the fuzzer in processes of their own, which start from one that is instrumented.

    Args:
        directory: for their output.
    """

    def __init__(self, directory: Path) -> None:
        self._log = directory / "log"
        command = [sys.executable, "-m", "tests.fuzz.run", "--many", str(self._log)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    def run(self, arguments: list[str], seconds: int) -> subprocess.CompletedProcess[str]:
        """Fuzz, for so many seconds at most and a few minutes to begin."""
        self._input.write(json.dumps(arguments) + "\n")
        self._input.flush()
        ready, _, _ = select.select([self._output], [], [], seconds + 250)
        code = self._output.readline() if ready else ""
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        assert code, f"the fuzzer did not come to an end: {said[-3000:]}"
        return subprocess.CompletedProcess(arguments, int(code), "", said)

    def close(self) -> None:
        """End all of them."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._input.close()
        self._output.close()


@pytest.fixture(scope="session")
def fuzzers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzers]:
    """One process that is instrumented, for all tests."""
    made = Fuzzers(tmp_path_factory.mktemp("fuzzers"))
    yield made
    made.close()


def _fuzz(
    fuzzers: Fuzzers, name: str, seconds: int, directory: Path
) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer in its own process; what it finds goes to `directory`."""
    corpus = directory / "corpus"
    corpus.mkdir()
    for number, octets in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(octets)
    arguments = [
        *(name, str(corpus)),
        *map(str, [CORPUS / name] if (CORPUS / name).is_dir() else []),
        *(f"-max_total_time={seconds}", "-max_len=4096", "-rss_limit_mb=1024", "-timeout=20"),
        *("-len_control=0", "-seed=1", f"-artifact_prefix={directory}/"),
    ]
    return fuzzers.run(arguments, seconds)


@pytest.mark.parametrize("name", HONEST)
def test_inputs_that_once_failed_are_handled(name: str) -> None:
    inputs = [*seeds(name), *(path.read_bytes() for path in _saved(name)), b"", b"\0", b"\xff" * 64]
    for octets in inputs:
        TARGETS[name](octets)


def test_every_directory_of_the_corpus_belongs_to_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(HONEST)


@pytest.mark.parametrize("name", HONEST)
def test_a_short_run_of_the_fuzzer_finds_nothing(
    fuzzers: Fuzzers, name: str, tmp_path: Path
) -> None:
    done = _fuzz(fuzzers, name, SECONDS, tmp_path)
    found = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert done.returncode == 0, f"{done.stderr[-3000:]}\ninputs: {found}"
    assert "Done" in done.stderr, "the fuzzer did not run to its end"


def test_the_fuzzer_finds_a_planted_fault(fuzzers: Fuzzers, tmp_path: Path) -> None:
    done = _fuzz(fuzzers, "canary", 60, tmp_path)
    assert done.returncode != 0
    assert "the canary sings" in done.stderr + done.stdout


@pytest.mark.soak
@pytest.mark.timeout(SHARE_SECONDS + 300)
@pytest.mark.parametrize("name", HONEST)
def test_a_long_run_of_the_fuzzer_finds_nothing(
    fuzzers: Fuzzers, name: str, tmp_path: Path
) -> None:
    done = _fuzz(fuzzers, name, SHARE_SECONDS, tmp_path)
    found = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert done.returncode == 0, f"{done.stderr[-3000:]}\ninputs: {found}"

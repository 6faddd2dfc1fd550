"""Every target survives its corpus and a short run of the fuzzer, and the fuzzer finds what is
there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
ROOT = Path(__file__).parents[2]
SECONDS = int(os.environ.get("HAREBELL_FUZZ_SECONDS", "2"))
SOAK_SECONDS = int(os.environ.get("HAREBELL_FUZZ_SOAK_SECONDS", "600"))
HONEST = sorted(set(TARGETS) - {"canary"})


def _saved(name: str) -> list[Path]:
    return sorted((CORPUS / name).glob("*")) if (CORPUS / name).is_dir() else []


def _fuzz(name: str, seconds: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer in its own process; what it finds goes to `folder`."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, octets in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(octets)
    command = [
        *(sys.executable, "-m", "tests.fuzz.run", name, str(corpus)),
        *map(str, [CORPUS / name] if (CORPUS / name).is_dir() else []),
        *(f"-max_total_time={seconds}", "-max_len=4096", "-rss_limit_mb=1024", "-timeout=20"),
        *("-len_control=0", "-seed=1", f"-artifact_prefix={folder}/"),
    ]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + 250, check=False
    )


@pytest.mark.parametrize("name", HONEST)
def test_what_once_mattered_is_handled(name: str) -> None:
    inputs = [*seeds(name), *(path.read_bytes() for path in _saved(name)), b"", b"\0", b"\xff" * 64]
    for octets in inputs:
        TARGETS[name](octets)


def test_every_folder_of_the_corpus_belongs_to_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(HONEST)


@pytest.mark.parametrize("name", HONEST)
def test_a_short_run_of_the_fuzzer_finds_nothing(name: str, tmp_path: Path) -> None:
    done = _fuzz(name, SECONDS, tmp_path)
    found = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert done.returncode == 0, f"{done.stderr[-3000:]}\ninputs: {found}"
    assert "Done" in done.stderr, "the fuzzer did not run to its end"


def test_the_fuzzer_finds_a_planted_fault(tmp_path: Path) -> None:
    done = _fuzz("canary", 60, tmp_path)
    assert done.returncode != 0
    assert "the canary sings" in done.stderr + done.stdout


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS + 200)
@pytest.mark.parametrize("name", HONEST)
def test_a_long_run_of_the_fuzzer_finds_nothing(name: str, tmp_path: Path) -> None:
    done = _fuzz(name, SOAK_SECONDS, tmp_path)
    found = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert done.returncode == 0, f"{done.stderr[-3000:]}\ninputs: {found}"

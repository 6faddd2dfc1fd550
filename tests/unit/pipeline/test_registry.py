"""States are there for others while a pipeline runs and after it; a dead one is told as lost."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.registry import (
    PipelineEntry,
    PipelineState,
    alive,
    default_directory,
    state_of,
    states,
)
from tests.patience import SECONDS, eventually


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = PipelineState(
        "orders", "orders.yaml", 7, "running", batch=3, rows=40, lag={"source": 2}
    )
    with PipelineEntry(tmp_path, "orders") as entry:
        entry.write(state)
        assert alive(tmp_path, "orders")
        assert state_of(tmp_path, "orders") == state
    assert states(tmp_path)[0].rows == 40


def test_a_pipeline_that_died_while_it_ran_is_lost(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from harebell.pipeline.registry import *\n"
        "entry = PipelineEntry(Path(sys.argv[1]), 'orders').__enter__()\n"
        "entry.write(PipelineState('orders', '', os.getpid(), 'running'))\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert not alive(tmp_path, "orders")
    assert state_of(tmp_path, "orders").state == "lost"


def test_a_pipeline_that_ends_while_one_looks_has_ended_and_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = PipelineEntry(tmp_path, "orders").__enter__()
    entry.write(PipelineState("orders", "", 7, "running"))
    opened = os.open

    def end_first(path: Any, flags: int, mode: int = 0o777) -> int:
        if Path(path).suffix == ".lock":
            monkeypatch.undo()
            entry.write(PipelineState("orders", "", 7, "ended"))
            entry.__exit__()
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", end_first)
    assert state_of(tmp_path, "orders").state == "ended"
    assert not alive(tmp_path, "orders")


def test_two_pipelines_of_one_name_do_not_run_at_a_time(tmp_path: Path) -> None:
    with (
        PipelineEntry(tmp_path, "orders"),
        pytest.raises(PipelineError, match="a pipeline named orders runs already"),
        PipelineEntry(tmp_path, "orders"),
    ):
        pass
    with PipelineEntry(tmp_path, "orders"):
        pass


def test_a_program_that_looks_does_not_count_as_the_pipeline(tmp_path: Path) -> None:
    PipelineEntry(tmp_path, "orders").write(PipelineState("orders", "", 7, "running"))
    with (tmp_path / "orders.lock").open("w") as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        assert not alive(tmp_path, "orders")
        assert state_of(tmp_path, "orders").state == "lost"


def test_a_pipeline_starts_although_a_program_looks_for_it(tmp_path: Path) -> None:
    with (tmp_path / "orders.lock").open("w") as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        end_of_look = threading.Timer(0.1, lambda: fcntl.flock(look, fcntl.LOCK_UN))
        end_of_look.start()
        with PipelineEntry(tmp_path, "orders"):
            assert alive(tmp_path, "orders")
        end_of_look.join()


def test_of_several_starts_during_a_look_one_runs_and_the_others_are_refused(
    tmp_path: Path,
) -> None:
    outcomes: list[str] = []
    all_known = threading.Event()

    def start() -> None:
        try:
            with PipelineEntry(tmp_path, "orders"):
                outcomes.append("runs")
                all_known.wait(SECONDS)
        except PipelineError:
            outcomes.append("refused")

    # Daemons: those that wait for each other would keep the process.
    starts = [threading.Thread(target=start, daemon=True) for _ in range(6)]
    with (tmp_path / "orders.lock").open("w") as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        for each in starts:
            each.start()
    assert eventually(lambda: len(outcomes) == len(starts)), outcomes
    all_known.set()
    for each in starts:
        each.join()
    assert sorted(outcomes) == ["refused"] * 5 + ["runs"]


def test_a_name_that_never_ran_is_told_with_those_that_did(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no pipeline named 'x' has run here, nor any other"):
        state_of(tmp_path, "x")
    with PipelineEntry(tmp_path, "orders") as entry:
        entry.write(PipelineState("orders", "", 1, "ended"))
    with pytest.raises(PipelineError, match="there are orders"):
        state_of(tmp_path, "../orders")
    assert not alive(tmp_path, "x")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "\udcff", '{"name": "bad"}', '{"name":"bad","file":"","pid":1,"rows":"x"}'],
)
def test_a_damaged_state_is_named_and_the_others_are_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_bytes(text.encode(errors="surrogateescape"))
    with PipelineEntry(tmp_path, "good") as entry:
        entry.write(PipelineState("good", "", 7, "running"))
        with pytest.raises(PipelineError, match=r"bad\.json is no state of a pipeline.*remove it"):
            state_of(tmp_path, "bad")
        bad, good = states(tmp_path)
    assert (bad.name, bad.state, good.state) == ("bad", "unknown", "running")
    assert "is no state of a pipeline" in bad.error


def test_a_state_of_a_later_version_is_read_without_what_only_that_knows(tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text(
        '{"name": "new", "file": "", "pid": 1, "state": "ended", "rows": 3, "colour": "blue"}'
    )
    assert state_of(tmp_path, "new").rows == 3


def test_the_directory_is_what_the_environment_says() -> None:
    assert default_directory({"HAREBELL_PIPELINES": "/a"}) == Path("/a")
    assert default_directory({"XDG_STATE_HOME": "/s"}) == Path("/s/harebell/pipelines")


def test_a_registry_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PipelineError, match=r"Not a directory; HAREBELL_PIPELINES names another"):
        PipelineEntry(tmp_path / "file" / "pipelines", "orders").__enter__()


def test_a_state_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with PipelineEntry(tmp_path, "orders") as entry:
        (tmp_path / "orders.new").mkdir()
        with pytest.raises(PipelineError, match="Is a directory; HAREBELL_PIPELINES"):
            entry.write(PipelineState("orders", "", 7))

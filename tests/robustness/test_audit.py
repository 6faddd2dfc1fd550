"""The audit trail has every act that was answered, after kill -9, a reset and a restore."""

from __future__ import annotations

import json
import subprocess
import threading
from http.client import HTTPException
from pathlib import Path

from tests.ports import free_port
from tests.running import asked, command, environment, running_broker
from tests.unit.management.http.asking import Api


def test_every_answered_act_is_in_the_trail_of_a_killed_broker(tmp_path: Path) -> None:
    port = free_port()
    flags = ("--management-port", str(port), "--data-dir", str(tmp_path))
    answered: list[str] = []
    enough = threading.Event()

    def act() -> None:
        number = 0
        while True:
            name = f"act-{number}"
            try:
                Api(port).done("PUT", f"/api/global-parameters/{name}", {"value": number})
            except (OSError, HTTPException):
                return
            answered.append(name)
            number += 1
            if number == 20:
                enough.set()

    with running_broker(*flags) as broker:
        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        assert enough.wait(60)
        broker.kill()
        thread.join(60)
    with running_broker(*flags):
        lines = Api(port).get("/api/audit?act=global-parameters.set&limit=1000")
    # The last one may have been done without an answer.
    assert [line["object"] for line in lines][: len(answered)] == answered
    assert len(lines) <= len(answered) + 1


def test_a_reset_leaves_the_trail(tmp_path: Path) -> None:
    with running_broker("--data-dir", str(tmp_path)) as broker:
        for words in (("vhosts", "add", "gone"), ("app", "stop"), ("app", "reset")):
            assert asked(broker, *words).returncode == 0
        assert asked(broker, "app", "start").returncode == 0
        lines = json.loads(asked(broker, "audit", "list", "--json").stdout)
    acts = [line["act"] for line in lines]
    assert [acts[0], acts[1], acts[-1]] == ["vhosts.add", "app.stop", "app.start"]


def test_a_restore_is_in_the_trail_of_the_directory_that_it_made(tmp_path: Path) -> None:
    target, restored = tmp_path / "target", tmp_path / "restored"
    target.mkdir()
    with running_broker() as broker:
        done = asked(broker, "backup", str(target))
        assert done.returncode == 0, done.stderr
        lines = json.loads(asked(broker, "audit", "list", "--json").stdout)
        assert [line["act"] for line in lines] == ["backups.start"]
    words = [command(), "restore", str(target), "--data-dir", str(restored)]
    subprocess.run(words, check=True, capture_output=True, env=environment(), timeout=60)
    with running_broker("--data-dir", str(restored)) as broker:
        lines = json.loads(asked(broker, "audit", "list", "--json").stdout)
    assert [(line["act"], line["door"]) for line in lines] == [("backups.restore", "command")]

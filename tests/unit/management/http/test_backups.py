"""Backups are made, listed and ended over HTTP, by administrators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.patience import eventually
from tests.unit.management.http.asking import Api


def test_a_backup_is_started_and_followed(api: Api, tmp_path: Path) -> None:
    row = api.done("POST", "/api/backups", {"target": str(tmp_path / "target"), "keep": 2}).json
    assert row["target"] == str(tmp_path / "target")
    assert eventually(lambda: api.get("/api/backups")[-1]["ended"])
    last = api.get("/api/backups")[-1]
    assert (last["id"], last["state"], last["problem"]) == (row["id"], "done", "")
    assert (tmp_path / "target" / last["name"] / "manifest").is_file()
    answer = api.ask("DELETE", "/api/backups")
    assert answer.status == 400
    assert answer.json["reason"] == "no backup is being made"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"target": ""},
        {"target": 7},
        {"target": "relative"},
        {"target": "/a\0b"},
        {"target": "/tmp/never", "keep": -1},
        {"target": "/tmp/never", "keep": 1 << 70},
        {"target": "/tmp/never", "rate": 1.5},
    ],
)
def test_a_wrong_request_is_refused_with_a_sentence(api: Api, body: dict[str, Any]) -> None:
    before = len(api.get("/api/backups"))
    answer = api.ask("POST", "/api/backups", body)
    assert answer.status == 400
    assert answer.json["reason"]
    assert len(api.get("/api/backups")) == before


def test_a_name_that_the_system_refuses_fails_the_backup(api: Api) -> None:
    api.done("POST", "/api/backups", {"target": "/" + "a" * 5000})
    assert eventually(lambda: api.get("/api/backups")[-1]["ended"])
    assert "File name too long" in api.get("/api/backups")[-1]["problem"]


@pytest.mark.parametrize("tag", ["monitoring", "policymaker", "management"])
def test_only_administrators_back_up(api: Api, tmp_path: Path, tag: str) -> None:
    user = api.user(f"backup-{tag}", tag)
    for method, body in (("POST", {"target": str(tmp_path)}), ("GET", None), ("DELETE", None)):
        assert api.ask(method, "/api/backups", body, user=user).status == 401
    assert not any(tmp_path.iterdir())

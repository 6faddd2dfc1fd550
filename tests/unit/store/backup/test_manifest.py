"""The manifest of a backup: what is written is read, and damage is named."""

from __future__ import annotations

import hashlib
import json

import pytest

from harebell.store.backup.manifest import (
    BackedUp,
    BackupError,
    Manifest,
    decode,
    is_name,
    next_name,
)

NAME = "000002-20260201T030000Z"
OLDER = "000001-20260131T030000Z"
FILE = BackedUp("queues/ab/1.seg", 7, "0" * 64, OLDER, "12-345")
DEFINITIONS = BackedUp("definitions.sqlite", 9, "1" * 64, OLDER, "-")


def _encoded() -> bytes:
    about = {"node": "harebell@a", "began": "2026-02-01T03:00:00Z"}
    return b"".join(
        Manifest(NAME, about, {each.path: each for each in (DEFINITIONS, FILE)}).encode()
    )


def _with(line: str) -> bytes:
    """A manifest with another line, and the right checksum."""
    before = b"".join(_encoded().splitlines(keepends=True)[:1]) + f"{line}\n".encode()
    return before + f"end 1 {hashlib.sha256(before).hexdigest()}\n".encode()


def test_a_written_manifest_is_read() -> None:
    found = decode(NAME, _encoded(), "/backup")
    assert found.files == {DEFINITIONS.path: DEFINITIONS, FILE.path: FILE}
    assert found.about["node"] == "harebell@a"
    assert found.places == {OLDER}
    assert FILE.stored == f"{OLDER}/files/queues/ab/1.seg"


@pytest.mark.parametrize("at", range(0, len(_encoded()) - 1, 3))
def test_every_byte_is_under_the_checksum(at: int) -> None:
    content = bytearray(_encoded())
    content[at] ^= 1
    with pytest.raises(BackupError, match=f"the backup {NAME} in /backup is damaged"):
        decode(NAME, bytes(content), "/backup")


@pytest.mark.parametrize("size", [0, 1, 50, len(_encoded()) - 2])
def test_a_manifest_that_was_cut_off_is_damaged(size: int) -> None:
    with pytest.raises(BackupError, match="is damaged"):
        decode(NAME, _encoded()[:size], "/backup")


@pytest.mark.parametrize(
    "line",
    [
        f"7 {'0' * 64} {OLDER} - ../outside",
        f"7 {'0' * 64} {OLDER} - /etc/passwd",
        f"7 {'0' * 64} {OLDER} - queues/../../outside",
        f"7 {'0' * 64} {OLDER} - queues/../1.seg",
        f"7 {'0' * 64} {OLDER} - control.sock",
        f"7 {'0' * 64} {OLDER} - definitions.sqlite-wal",
        f"7 {'0' * 64} {OLDER} - restoring/1.seg",
        f"7 {'0' * 64} ../{OLDER} - queues/ab/1.seg",
        "7",
        "",
    ],
)
def test_a_manifest_names_files_of_a_data_directory_alone(line: str) -> None:
    with pytest.raises(BackupError, match="names no file"):
        decode(NAME, _with(line), "/backup")


def test_a_manifest_without_definitions_is_damaged() -> None:
    with pytest.raises(BackupError, match="is damaged: its manifest lacks the definitions"):
        decode(NAME, _with(FILE.line.strip()), "/backup")


def test_a_later_version_is_named() -> None:
    before = b"".join(_encoded().splitlines(keepends=True)[:-1])
    before = before.replace(b'"harebell_backup": 1', b'"harebell_backup": 3')
    content = before + f"end 2 {hashlib.sha256(before).hexdigest()}\n".encode()
    with pytest.raises(BackupError, match="has format 3, and this version of Harebell reads 2"):
        decode(NAME, content, "/backup")


def test_a_manifest_of_several_stores_has_the_definitions_of_each() -> None:
    about = {"node": "n", "version": "1", "store": 1, "commit": 1, "began": "b", "stores": 3}
    manifest = Manifest(NAME, about)
    for path in manifest.definitions():
        manifest.files[path] = BackedUp(path, 1, "0" * 64, NAME, "-")
    content = b"".join(manifest.encode())
    assert b'"harebell_backup": 2' in content
    assert decode(NAME, content, "/backup").stores == 3
    del manifest.files["stores/3/definitions.sqlite"]
    with pytest.raises(BackupError, match="lacks the definitions"):
        decode(NAME, b"".join(manifest.encode()), "/backup")
    for stores in (0, 100, "2", None):
        manifest = Manifest(NAME, {**about, "stores": 1})
        manifest.files[DEFINITIONS.path] = DEFINITIONS
        before = b"".join(b"".join(manifest.encode()).splitlines(keepends=True)[:-1])
        before = before.replace(b'"stores": 1', b'"stores": ' + json.dumps(stores).encode())
        content = before + f"end 1 {hashlib.sha256(before).hexdigest()}\n".encode()
        with pytest.raises(BackupError, match="is damaged"):
            decode(NAME, content, "/backup")


def test_names_are_in_the_order_of_backups_whatever_the_clock_says() -> None:
    assert next_name([], "20260131T030000Z") == OLDER
    assert next_name([OLDER, NAME], "20200101T000000Z") == "000003-20200101T000000Z"
    assert is_name(OLDER)
    assert not any(map(is_name, ("", "queues", "LOCK", "1-20260131T030000Z", f"{OLDER}x")))

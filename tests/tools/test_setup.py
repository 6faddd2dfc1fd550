"""The set-up: it names what is missing, and repeats only what has changed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"


def tool(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """One of the scripts, as a module."""
    monkeypatch.syspath_prepend(str(TOOLS))
    spec = importlib.util.spec_from_file_location(f"tools_{name}", TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def run(*arguments: str, path: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The set-up on a machine that has only the programs of one directory."""
    return subprocess.run(
        [sys.executable, str(TOOLS / "setup.py"), *arguments],
        env={"PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_machine_without_anything_is_told_what_to_install(tmp_path: Path) -> None:
    result = run("test", path=str(tmp_path))
    assert result.returncode == 1
    assert result.stdout == ""
    for package in ("gcc", "openjdk-17-jre-headless", "nodejs", "npm", "openssl"):
        assert f"apt-get install {package}" in result.stderr
    command = result.stderr.splitlines()[-1]
    assert "apt-get update" in command
    assert "gcc openjdk-17-jre-headless nodejs npm" in command


def test_to_run_a_broker_neither_java_nor_clients_are_needed(tmp_path: Path) -> None:
    result = run("run", path=str(tmp_path))
    assert result.returncode == 1
    assert "apt-get install gcc" in result.stderr
    assert "openjdk" not in result.stderr
    assert "nodejs" not in result.stderr


def test_without_compiled_parts_no_compiler_is_needed_and_none_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("demo", path=str(tmp_path), HAREBELL_IMPL="python")
    assert result.returncode == 1
    assert "openjdk-17-jre-headless" in result.stderr
    assert "gcc" not in result.stderr
    setup = tool("setup", monkeypatch)
    (tmp_path / "setup.py").touch()
    package = tmp_path / "src" / "package"
    package.mkdir(parents=True)
    (package / "hot.pyx").touch()
    commands: list[str] = []
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "SOURCE", package)
    monkeypatch.setattr(setup, "run", lambda title, command, **environment: commands.append(title))
    monkeypatch.setenv("HAREBELL_IMPL", "python")
    setup.compile_kernels()
    assert commands == []
    monkeypatch.delenv("HAREBELL_IMPL")
    setup.compile_kernels()
    assert commands == ["compiled hot path"]


def test_java_that_is_too_old_is_no_java(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    result = run("demo", path=f"{tmp_path}:/usr/bin:/bin")
    assert "Java 17 or newer" in result.stderr


def test_a_machine_without_python_is_told_so(tmp_path: Path) -> None:
    for name in ("bash", "dirname", "env"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    result = subprocess.run(
        ["/usr/bin/bash", str(TOOLS / "setup.sh"), "run"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "needs Python 3.11 or newer" in result.stderr
    assert "apt-get install -y python3 python3-venv python3-dev" in result.stderr


def test_compiled_files_of_modules_no_longer_compiled_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HAREBELL_IMPL", raising=False)
    setup = tool("setup", monkeypatch)
    source = tmp_path / "src" / "harebell"
    source.mkdir(parents=True)
    for path in (tmp_path / "setup.py", source / "cold.py"):
        path.touch()
    (source / "hot.py").write_text("from harebell.base.c_types import Done\n")
    (source / "kernels").mkdir()
    for name in ("hot", "cold", "kernels/shared"):
        (source / f"{name}.cpython-311-x86_64-linux-gnu.so").touch()
    commands = []
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "SOURCE", source)
    monkeypatch.setattr(setup, "run", lambda title, command, **environment: commands.append(title))
    setup.compile_kernels()
    setup.compile_kernels()
    assert commands == ["compiled hot path"]
    assert set(setup.binaries()) == {source / "hot", source / "kernels" / "shared"}
    (source / "hot.cpython-311-x86_64-linux-gnu.so").unlink()
    setup.compile_kernels()
    assert len(commands) == 2


def test_steps_that_need_the_network_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setup = tool("setup", monkeypatch)
    monkeypatch.setattr(sys.modules["patience"], "PAUSES_SECONDS", (0, 0))
    count = f"echo x >> {tmp_path}/tries; echo no route to the mirror; exit "
    tries = "$(test $(wc -l < {}/tries) -ge {}; echo $?)"
    setup.download("a mirror", ["sh", "-c", count + tries.format(tmp_path, 2)])
    assert len((tmp_path / "tries").read_text().split()) == 2
    assert "failed (no route to the mirror); trying again" in capsys.readouterr().out
    (tmp_path / "tries").unlink()
    with pytest.raises(SystemExit):
        setup.download("a mirror", ["sh", "-c", count + tries.format(tmp_path, 9)])
    assert len((tmp_path / "tries").read_text().split()) == 3
    assert "set-up failed at: a mirror" in capsys.readouterr().err

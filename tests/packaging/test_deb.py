"""The Debian package: what is in it, how it is installed, and when it refuses to be.

dpkg installs into a directory of its own (`--root`), with the package's own scripts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harebell.cli.verbs.compat import TOOLS
from tests.running import running_broker

ROOT = Path(__file__).parents[2]
_SECONDS = 500
_KINDS = ("preinst", "postinst", "prerm", "postrm")


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def printed(*command: str | Path, **environment: str) -> str:
    done = run(*command, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("deb")
    made = printed(sys.executable, "tools/deb.py", target, HAREBELL_IMPL="python")
    path = Path(made.splitlines()[-1])
    assert path.parent == target
    return path


@pytest.fixture(scope="module")
def tree(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the package, and in DEBIAN what dpkg reads."""
    target = tmp_path_factory.mktemp("tree") / "tree"
    printed("dpkg-deb", "--raw-extract", package, target)
    return target


@pytest.fixture(scope="module")
def older(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same package with a smaller version."""
    directory = tmp_path_factory.mktemp("older")
    copied = directory / "tree"
    shutil.copytree(tree, copied, symlinks=True)
    for name in ("control", "preinst"):
        file = copied / "DEBIAN" / name
        file.write_text(file.read_text().replace("0.1.0-1", "0.0.9-1"))
    target = directory / "older.deb"
    printed("dpkg-deb", "--build", "-Znone", "--root-owner-group", copied, target)
    return target


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory that dpkg takes for a machine without any package."""
    root = tmp_path / "machine"
    for name in ("updates", "info"):
        (root / "var" / "lib" / "dpkg" / name).mkdir(parents=True)
    for name in ("status", "available"):
        (root / "var" / "lib" / "dpkg" / name).touch()
    (root / "var" / "log").mkdir()
    return root


def dpkg(machine: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    privilege = [] if os.geteuid() == 0 else ["fakeroot"]
    forced = ("--force-depends", "--force-script-chrootless", "--no-triggers")
    return run(
        *(*privilege, "dpkg", f"--root={machine}", *forced, *words),
        PATH=f"{os.environ['PATH']}:/usr/sbin:/sbin",
    )


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_the_package_has_the_broker_its_unit_pages_and_completions(tree: Path) -> None:
    names = files(tree)
    assert names >= {
        *("usr/bin/harebell", "etc/harebell/harebell.toml"),
        *("usr/lib/systemd/system/harebell.service", "usr/lib/sysusers.d/harebell.conf"),
        *("usr/lib/tmpfiles.d/harebell.conf", "usr/share/man/man1/harebell.1.gz"),
        *("usr/share/man/man1/harebell-serve.1.gz", "usr/share/man/man1/harebell-queues.1.gz"),
        "usr/share/bash-completion/completions/harebell",
        "usr/share/zsh/vendor-completions/_harebell",
        "usr/share/fish/vendor_completions.d/harebell.fish",
    }
    assert not [name for name in names if "__pycache__" in name]
    assert "usr/bin/rabbitmqctl" not in names
    assert (tree / "DEBIAN" / "conffiles").read_text() == "/etc/harebell/harebell.toml\n"
    printed(
        sys.executable, "-m", "harebell", "config", "check", tree / "etc/harebell/harebell.toml"
    )


def test_rabbitmqs_commands_are_in_a_directory_of_their_own_and_run(
    package: Path, machine: Path
) -> None:
    done = dpkg(machine, "--install", package)
    assert done.returncode == 0, done.stdout + done.stderr
    directory = machine / "usr/lib/harebell/rabbitmq"
    assert {path.name for path in directory.iterdir()} == set(TOOLS)
    names = {path.name for path in machine.rglob("*") if path.parent != directory}
    assert not names & set(TOOLS)
    python = machine / "usr/lib/harebell/bin/python"
    with running_broker() as broker:
        for tool, words in (
            ("rabbitmqctl", ("add_vhost", "made by the package")),
            ("rabbitmq-diagnostics", ("ping",)),
            ("rabbitmqctl", ("list_vhosts", "name")),
        ):
            shebang = (directory / tool).read_text().splitlines()[0]
            assert shebang == "#!/usr/lib/harebell/bin/python"
            # Installed below another root, its Python is not where the script looks for it.
            shown = printed(
                python, directory / tool, *words, HAREBELL_DATA_DIR=str(broker.data_dir)
            )
    assert "made by the package" in shown


def test_a_package_without_compiled_parts_says_so(tree: Path, package: Path) -> None:
    packages = tree / "usr/lib/harebell/lib"
    assert not list(packages.glob("python*/site-packages/harebell/**/*.so"))
    described = printed("dpkg-deb", "--field", package, "Description")
    assert "This one was made without compiled parts" in described


def test_dpkg_reads_its_control_file_and_owners_are_root(package: Path) -> None:
    fields = printed("dpkg-deb", "--field", package)
    assert "Package: harebell\n" in fields
    assert re.search(r"Depends: python3 \(>= 3\.\d+\), python3 \(<< 3\.\d+\), libc6", fields)
    owners = {line.split()[1] for line in printed("dpkg-deb", "--contents", package).splitlines()}
    assert owners == {"root/root"}


def test_lintian_finds_no_error(package: Path) -> None:
    done = run("lintian", "--allow-root", "--fail-on", "error", package)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "E: " not in done.stdout


def test_a_manual_page_is_laid_out_without_warnings(tree: Path) -> None:
    for name in ("harebell", "harebell-serve", "harebell-queues", "harebell-config"):
        page = tree / "usr/share/man/man1" / f"{name}.1.gz"
        done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", page, MANWIDTH="100")
        assert done.returncode == 0
        assert done.stderr == ""
        assert name in done.stdout
        assert "OPTIONS" in re.sub(r".\x08", "", done.stdout)


def test_the_scripts_are_valid_shell(tree: Path) -> None:
    for kind in _KINDS:
        printed("sh", "-n", tree / "DEBIAN" / kind)
        assert "@" not in (tree / "DEBIAN" / kind).read_text().replace('"$@"', "")


def test_the_package_is_installed_runs_and_is_removed_but_for_its_data(
    package: Path, older: Path, machine: Path
) -> None:
    first = dpkg(machine, "--install", older)
    assert first.returncode == 0, first.stdout + first.stderr
    version = printed(machine / "usr/lib/harebell/bin/python", "-m", "harebell", "--version")
    assert version.startswith("harebell 0.1.0 (python implementation")
    assert version.strip().endswith(f"commit {printed('git', 'rev-parse', 'HEAD')[:8]})")
    data = machine / "var/lib/harebell"
    (data / "kept").write_text("a message")
    configuration = machine / "etc/harebell/harebell.toml"
    configuration.write_text(configuration.read_text() + "heartbeat = 30\n")

    upgrade = dpkg(machine, "--install", package)
    assert upgrade.returncode == 0, upgrade.stdout + upgrade.stderr
    assert configuration.read_text().endswith("heartbeat = 30\n")
    assert (data / "kept").exists()

    before = files(machine / "usr")
    downgrade = dpkg(machine, "--install", older)
    assert downgrade.returncode != 0
    assert "version 0.1.0-1 is installed, and this is the older version" in downgrade.stderr
    assert files(machine / "usr") == before
    assert "0.1.0-1" in dpkg(machine, "--status", "harebell").stdout

    assert dpkg(machine, "--remove", "harebell").returncode == 0
    assert not (machine / "usr/lib/harebell").exists()
    assert configuration.exists()
    purge = dpkg(machine, "--purge", "harebell")
    assert purge.returncode == 0, purge.stdout + purge.stderr
    assert not configuration.exists()
    assert (data / "kept").read_text() == "a message"


def test_a_data_directory_of_another_user_stops_the_installation(
    package: Path, machine: Path
) -> None:
    data = machine / "var/lib/harebell"
    data.mkdir()
    (data / "theirs").touch()
    before = files(machine)
    done = dpkg(machine, "--install", package)
    assert done.returncode != 0
    assert "belongs to the user with the number" in done.stderr
    assert "Nothing was changed." in done.stderr
    assert not (machine / "usr").exists()
    assert files(data) == {"theirs"}
    assert {name for name in files(machine) - before if "dpkg" not in name} <= {"var/log/dpkg.log"}


def test_also_an_empty_data_directory_of_another_user_stops_it_but_not_one_of_root(
    tree: Path, machine: Path
) -> None:
    data = machine / "var/lib/harebell"
    data.mkdir()
    script = tree / "DEBIAN" / "preinst"
    words = f"chown $OWNER {data} && DPKG_ROOT={machine} sh {script} install"
    theirs = run("fakeroot", "sh", "-c", words, OWNER="4711")
    assert theirs.returncode == 1
    assert f"{data} belongs to the user with the number 4711 and not to harebell" in theirs.stderr
    assert "Nothing was changed." in theirs.stderr
    roots = run("fakeroot", "sh", "-c", words, OWNER="0")
    assert (roots.returncode, roots.stderr) == (0, "")


def test_a_disk_without_room_stops_the_installation(tree: Path, machine: Path) -> None:
    script = machine.parent / "preinst"
    text = (tree / "DEBIAN" / "preinst").read_text()
    # More than any disk has, so that this one is too small.
    script.write_text(re.sub(r"needed_kib=\d+", f"needed_kib={10**15}", text))
    before = files(machine)
    done = run("sh", script, "install", DPKG_ROOT=str(machine))
    assert done.returncode == 1
    assert re.search(r"the disk has \d+ KiB free, and the installation needs", done.stderr)
    assert files(machine) == before

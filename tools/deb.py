"""Make the Debian package: `make deb`, or `.venv/bin/python tools/deb.py DIRECTORY`.

The package has Harebell and the Python packages that it needs in an environment of its own:

    /usr/lib/harebell/            a virtual environment of Debian's Python, made of wheels
    /usr/bin/harebell             a link into it
    /usr/lib/harebell/rabbitmq/   rabbitmqctl and RabbitMQ's other commands, not on PATH
    /etc/harebell/harebell.toml   the configuration, which upgrades keep
    /usr/lib/systemd, sysusers.d, tmpfiles.d
    /usr/share/man, bash-completion, zsh, fish

`HAREBELL_IMPL=python` makes it without compiled parts, in seconds, and its description says so.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import md5
from pathlib import Path

from man_pages import man_pages
from patience import fetch
from sources import copy_sources

from harebell import __version__
from harebell.cli.main import harebell
from harebell.cli.verbs.compat import TOOLS

ROOT = Path(__file__).resolve().parent.parent
DEBIAN = ROOT / "packaging" / "debian"
SYSTEMD = ROOT / "packaging" / "systemd"
SYSTEM_PYTHON = Path("/usr/bin/python3")
COMPAT = ROOT / "packaging" / "rabbitmq-compat" / "src" / "harebell_rabbitmq_compat"
HOME = Path("usr/lib/harebell")
PURE = os.environ.get("HAREBELL_IMPL") == "python"
KINDS = {
    True: "without compiled parts: about ten times the CPU time per message",
    False: "with a compiled hot path",
}
"""What the description says of the package, by whether it is pure Python."""
VERSION = f"{__version__}-1"
MAINTAINER = "Harebell developers <harebell@harebell.invalid>"
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/harebell",
    "zsh": "usr/share/zsh/vendor-completions/_harebell",
    "fish": "usr/share/fish/vendor_completions.d/harebell.fish",
}
SPARE_KIB = 64 * 1024
"""Room that must be left beside what is installed, for compiled files and the first data."""


def fail(sentence: str) -> None:
    """End with a sentence."""
    sys.exit(f"harebell: the Debian package was not made: {sentence}")


def output(command: list[str | Path], **environment: str) -> str:
    """What a command prints; when it fails, what it said, and the end."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def pip(*words: str | Path) -> None:
    """Run pip, which may have to fetch packages."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    done = fetch([*command, *map(str, words)], cwd=ROOT)
    if done.returncode != 0:
        fail(f"pip {' '.join(map(str, words))}\n{done.stdout}")


def system_version() -> str:
    """The version of Debian's Python, such as 3.11."""
    if not SYSTEM_PYTHON.exists():
        fail(f"{SYSTEM_PYTHON} is missing: apt-get install python3")
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return output([SYSTEM_PYTHON, "-I", "-c", code]).strip()


def make_wheel(directory: Path) -> Path:
    """Build Harebell's wheel for Debian's Python from a copy of the tracked files."""
    source = directory / "source"
    copy_sources(source)
    build: list[str | Path] = ["wheel", "--no-deps", "--wheel-dir", directory, source]
    if PURE:
        pip(*build, "--no-build-isolation")
    else:
        pip("--python", SYSTEM_PYTHON, *build)
    (wheel,) = directory.glob("harebell-*.whl")
    return wheel


def install_wheel(wheel: Path, tree: Path, python: str) -> None:
    """Make the environment below /usr/lib/harebell."""
    home = tree / HOME
    (home / "bin").mkdir(parents=True)
    packages = home / "lib" / f"python{python}" / "site-packages"
    pip(
        *("--python", SYSTEM_PYTHON, "install", "--no-compile", "--ignore-installed"),
        *("--only-binary", ":all:", "--target", packages, f"{wheel}[management]"),
    )
    shutil.rmtree(packages / "bin")
    for record in packages.glob("*.dist-info/direct_url.json"):
        record.unlink()
    (home / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    (home / "bin" / "python").symlink_to(f"/usr/bin/python{python}")
    add_script(home / "bin" / "harebell", "harebell.__main__", "main")
    add_compat(home, packages)
    for library in packages.rglob("*.so*"):
        library.chmod(0o644)
        output(["strip", "--strip-unneeded", "--remove-section=.comment", library])
    (tree / "usr" / "bin").mkdir()
    (tree / "usr" / "bin" / "harebell").symlink_to("../lib/harebell/bin/harebell")


def add_script(path: Path, module: str, function: str) -> None:
    """Write a command that calls a function in the environment of the package."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"#!/{HOME}/bin/python\n"
        f"import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
    )
    path.chmod(0o755)


def add_compat(home: Path, packages: Path) -> None:
    """Add RabbitMQ's commands in a directory of their own: rabbitmq-server has their names."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(COMPAT, packages / COMPAT.name, ignore=ignored)
    for tool in TOOLS:
        add_script(home / "rabbitmq" / tool, f"{COMPAT.name}.main", tool.replace("-", "_"))


def add(tree: Path, name: str, content: str | bytes) -> None:
    """Write a file of the package."""
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def zipped(text: str) -> bytes:
    """Compress a page the same way each time."""
    return gzip.compress(text.encode(), 9, mtime=0)


def add_files(tree: Path, when: datetime) -> None:
    """Add all files that are not Python's."""
    add(tree, "etc/harebell/harebell.toml", (DEBIAN / "harebell.toml").read_text())
    unit = (SYSTEMD / "harebell.service").read_text()
    add(tree, "usr/lib/systemd/system/harebell.service", unit)
    add(tree, "usr/lib/sysusers.d/harebell.conf", (SYSTEMD / "harebell.conf").read_text())
    add(tree, "usr/lib/tmpfiles.d/harebell.conf", (DEBIAN / "harebell.tmpfiles").read_text())
    add(tree, "usr/share/doc/harebell/copyright", (DEBIAN / "copyright").read_text())
    overrides = (DEBIAN / "lintian-overrides").read_text()
    add(tree, "usr/share/lintian/overrides/harebell", overrides)
    changes = (
        f"harebell ({VERSION}) unstable; urgency=medium\n\n"
        "  * See https://keepachangelog.com and CHANGELOG.md of the sources.\n\n"
        f" -- {MAINTAINER}  {format_datetime(when)}\n"
    )
    add(tree, "usr/share/doc/harebell/changelog.Debian.gz", zipped(changes))
    for name, page in man_pages(harebell, __version__).items():
        add(tree, f"usr/share/man/man1/{name}.gz", zipped(page))
    for shell, place in COMPLETIONS.items():
        add(tree, place, output([sys.executable, "-m", "harebell", "completion", shell]))


def size_kib(tree: Path) -> int:
    """How much room the files take, as Debian counts it."""
    return sum(
        (path.stat().st_size + 1023) // 1024 if path.is_file() else 1
        for path in tree.rglob("*")
        if not path.is_symlink()
    )


def filled(name: str, **values: str | int) -> str:
    """A file of packaging/debian with its @WORDS@ replaced."""
    text = (DEBIAN / name).read_text()
    for word, value in values.items():
        text = text.replace(f"@{word}@", str(value))
    return text


def add_control(tree: Path, python: str, architecture: str) -> None:
    """Add what dpkg reads: the control file, the list of configuration files, and the scripts."""
    size = size_kib(tree)
    after = f"{python.split('.')[0]}.{int(python.split('.')[1]) + 1}"
    values: dict[str, str | int] = {
        "VERSION": VERSION,
        "ARCHITECTURE": architecture,
        "MAINTAINER": MAINTAINER,
        "INSTALLED_SIZE": size,
        "PYTHON": f"python3 (>= {python}), python3 (<< {after})",
        "NEEDED_KIB": size + SPARE_KIB,
        "KIND": KINDS[PURE],
    }
    sums = [
        f"{md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(tree)}\n"
        for path in sorted(tree.rglob("*"))
        if path.is_file() and not path.is_symlink() and not path.is_relative_to(tree / "etc")
    ]
    add(tree, "DEBIAN/md5sums", "".join(sums))
    add(tree, "DEBIAN/control", filled("control", **values))
    add(tree, "DEBIAN/conffiles", "/etc/harebell/harebell.toml\n")
    for name in SCRIPTS:
        add(tree, f"DEBIAN/{name}", filled(name, **values))
        (tree / "DEBIAN" / name).chmod(0o755)


def main(arguments: list[str]) -> None:
    """Make the package and print where it is."""
    if len(arguments) != 1:
        fail("usage: tools/deb.py DIRECTORY")
    for program in ("dpkg-deb", "strip", "git"):
        if shutil.which(program) is None:
            fail(f"{program} is missing: apt-get install dpkg-dev binutils git")
    target = Path(arguments[0])
    target.mkdir(parents=True, exist_ok=True)
    python = system_version()
    architecture = output(["dpkg", "--print-architecture"]).strip()
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="harebell-deb-") as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir(mode=0o755)
        install_wheel(make_wheel(Path(scratch)), tree, python)
        add_files(tree, datetime.now(UTC))
        add_control(tree, python, architecture)
        package = target / f"harebell_{VERSION}_{architecture}.deb"
        output(["dpkg-deb", "--build", "--root-owner-group", tree, package])
    print(f"made {KINDS[PURE]}:")
    print(package)


if __name__ == "__main__":
    main(sys.argv[1:])

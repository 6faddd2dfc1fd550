"""A small file system of one's own, to be filled up: a tmpfs in a mount namespace.

The namespace belongs to a process that sleeps. A broker is started in it, and may be killed and
started again there; the test reaches the files through the sleeper's directory in /proc.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.patience import eventually

_MOUNT = 'mount -t tmpfs -o size="$1",mode=0700 none "$2" && echo mounted && exec sleep infinity'
_BALLAST = "ballast"
_CHUNK = 65_536


class SmallDisk:
    """A file system of a few octets.

    Args:
        directory: an empty directory that it is mounted on.
        octets: its size.

    Attributes:
        data_dir: where a broker in the namespace has its data.
        prefix: a command that runs another one in the namespace.
        seen: the directory as this process sees it.
    """

    def __init__(self, directory: Path, octets: int) -> None:
        for tool in ("unshare", "nsenter"):
            assert shutil.which(tool), f"{tool} is missing: apt-get install util-linux"
        self._sleeper = subprocess.Popen(
            ["unshare", "-rm", "sh", "-c", _MOUNT, "mount", str(octets), str(directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._sleeper.stdout is not None
        said = self._sleeper.stdout.readline()
        assert said == "mounted\n", f"no file system can be mounted in a namespace here: {said}"
        self.data_dir = directory / "data"
        self.seen = Path(f"/proc/{self._sleeper.pid}/root{directory}")
        self.prefix = ["nsenter", "-t", str(self._sleeper.pid), "-U", "-m", "--preserve"]

    def free(self) -> int:
        """Octets that can be written."""
        return shutil.disk_usage(self.seen).free

    def fill(self, leave: int) -> None:
        """Fill it up but for so many octets."""
        with (self.seen / _BALLAST).open("ab") as file, contextlib.suppress(OSError):
            while (room := self.free() - leave) > 0:
                file.write(bytes(min(room, _CHUNK)))
                file.flush()

    def give_back(self) -> None:
        """Make the room again that `fill` took."""
        (self.seen / _BALLAST).unlink()

    def end(self) -> None:
        """Let it go, with everything in it."""
        self._sleeper.kill()
        self._sleeper.communicate()


@contextlib.contextmanager
def small_disk(directory: Path, octets: int) -> Iterator[SmallDisk]:
    """A small disk for the length of a block."""
    directory.mkdir()
    disk = SmallDisk(directory, octets)
    try:
        yield disk
    finally:
        disk.end()


def wait_for_room(disk: SmallDisk, octets: int) -> bool:
    """Whether so much room comes back by itself."""
    return eventually(lambda: disk.free() >= octets)

"""The power goes after every operation of the disk, and nothing that was confirmed is lost.

Scripts of random work run over the simulated disk. After every operation that changes something,
several disks are made as a power loss could leave them. Each is opened and judged by the ledger,
opened again, which must change nothing, and on some of them recovery itself loses its power, or
work goes on and is judged once more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from harebell.base.ports import File
from harebell.store.commit import Batch
from harebell.store.log.log_index import is_index
from harebell.store.log.segment import unused
from harebell.store.redo import PATH, decode
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk, SimFile
from tests.sim.logs import Accounts, Life, Picture
from tests.sim.script import SHAPES, Script, Shape

FIRST = int(os.environ.get("HAREBELL_POWER_SEED", "1"))
STATES = int(os.environ.get("HAREBELL_POWER_STATES", "12000"))
SOAK_STATES = 1_000_000
IMAGES = 2
DEEPER = 0.05
GO_ON = 0.05


class Broken(BaseException):
    """A promise was broken. Nobody on the way up may take it for an error of the disk."""


@dataclass
class Tally:
    """What was tried.

    Attributes:
        states: disks that were opened and judged.
        cuts: power losses in the middle of recovery.
        went_on: disks on which work went on.
        sent, confirmed: messages of the scripts.
        scripts: how many there were.
    """

    states: int = 0
    cuts: int = 0
    went_on: int = 0
    sent: int = 0
    confirmed: int = 0
    scripts: int = 0


class Storm:
    """One script, and every power loss that may meet it.

    Args:
        seed: decides everything.
        shape: what the work is like.
        tally: where to count.
    """

    def __init__(self, seed: int, shape: Shape, tally: Tally) -> None:
        self.seed = seed
        self.shape = shape
        self.tally = tally
        self.rng = Random(f"power {seed}")
        self.disk = SimDisk(seed=seed)
        self.definitions = SimDefinitions(self.disk)
        self.accounts = Accounts()
        self.base = 0

    def run(self) -> None:
        """Work, with a power loss after every operation; end in good order, and do it again."""
        self._work(self.shape.steps)
        self.disk = self.disk.copy()
        self.definitions = self.definitions.crash(self.disk, self.rng)
        self.base = 10
        self._work(10)
        verdict = self.accounts.ledger.judge()
        self.tally.sent += verdict.sent
        self.tally.confirmed += verdict.confirmed
        self.tally.scripts += 1

    def _work(self, steps: int) -> None:
        """One life from its start to its end."""
        self.disk.after = self._lose_power
        clean = self.base > 0
        life = Life(
            self.disk,
            self.definitions,
            self.accounts,
            self.base,
            clean=clean,
            ahead_from=self.shape.ahead_from,
        )
        life.recover()
        script = Script(life, self.shape, Random(f"script {self.seed} {self.base}"))
        script.run(steps)
        assert life.stop(), "the disk is not full"
        assert not self.disk.handles, f"still open: {self.disk.handles}"
        assert not life.damages(), life.damages()
        self._stopped_well(life)

    def _where(self, more: str) -> str:
        return f"seed {self.seed}, operation {self.disk.operations}, {more}"

    def _lose_power(self) -> None:
        try:
            for number in range(IMAGES):
                self._examine(
                    self.disk, self.definitions, self.accounts, f"image {number}", self.base + 1
                )
        except Exception as error:
            raise Broken(f"{self._where('')}: {error!r}") from error

    def _examine(
        self,
        disk: SimDisk,
        definitions: SimDefinitions,
        accounts: Accounts,
        name: str,
        number: int,
    ) -> None:
        """What a power loss leaves is opened, judged, and opened again."""
        image = disk.crash(self.rng)
        rows = definitions.crash(image, self.rng)
        known = accounts.copy()
        where = self._where(name)
        life = Life(image, rows, known, number)
        if self.rng.random() < DEEPER and number < self.base + 4:
            again = accounts.copy()
            image.after = lambda: self._cut(image, rows, again, f"{name}, in recovery", number)
        before = _files(image)
        life.recover()
        image.after = None
        picture = life.look(where)
        life.judge(where, picture)
        self.tally.states += 1
        after = _files(image)
        _keeps_evidence(before, after, [*life.logs], where)
        self._again(image, False, rows, picture, number, f"{where}, opened again")
        self._again(image, True, rows, picture, number, f"{where}, crashed again")
        assert after == _files(image), f"{where}: reading changed the files"
        if self.rng.random() < GO_ON and number < self.base + 4:
            self._go_on(life, name, number)

    def _cut(
        self, disk: SimDisk, rows: SimDefinitions, accounts: Accounts, name: str, number: int
    ) -> None:
        self.tally.cuts += 1
        try:
            self._examine(disk, rows, accounts, name, number + 1)
        except Exception as error:
            raise Broken(f"{self._where(name)}: {error!r}") from error

    def _again(
        self,
        disk: SimDisk,
        crashed: bool,
        rows: SimDefinitions,
        picture: Picture,
        number: int,
        where: str,
    ) -> None:
        """Another life finds the same, and changes nothing, unless the power went once more."""
        image = disk.crash(self.rng) if crashed else disk.copy()
        before = _files(disk)
        life = Life(image, rows.crash(image, self.rng), Accounts(), number)
        life.recover()
        assert life.look(where) == picture, f"{where}: something else is found"
        after = _files(image)
        changed = [path for path in before if before[path] != after.get(path)]
        if crashed:
            changed = [path for path in changed if path.startswith("quarantine/")]
        else:
            repairs = [text for level, text in life.reports if level == "warning"]
            assert not repairs, f"{where}: repaired once more: {repairs}"
        assert not changed, f"{where}: the files were changed: {changed}"
        self.tally.states += 1

    def _go_on(self, life: Life, name: str, number: int) -> None:
        """Work on what was recovered, and lose the power once more."""
        self.tally.went_on += 1
        script = Script(life, self.shape, Random(self.rng.getrandbits(64)))
        script.run(8)
        name = f"{name}, went on"
        self._examine(life.disk, life.definitions, life.accounts, name, number + 1)
        if self.rng.random() < 0.5:
            assert life.stop(), "the disk is not full"
            assert not life.disk.handles, f"still open: {life.disk.handles}"
            self._examine(life.disk, life.definitions, life.accounts, f"{name}, ended", number + 1)

    def _stopped_well(self, life: Life) -> None:
        """A clean end is found as it was, with marks that are exact."""
        where = self._where("after a clean end")
        expected = {identity: life.accounts.handed.get(identity, 0) for identity in life.logs}
        image = self.disk.crash(self.rng)
        rows = self.definitions.crash(image, self.rng)
        other = Life(image, rows, self.accounts.copy(), self.base + 1, clean=True)
        other.recover()
        picture = other.look(where)
        other.judge(where, picture)
        assert not other.damages(), f"{where}: {other.damages()}"
        for identity, log in other.logs.items():
            assert log.seen() == expected[identity], f"{where}: {identity} was seen to {log.seen()}"
        self.tally.states += 1


def _files(disk: SimDisk) -> dict[str, bytes]:
    """Every file but the indexes, which reading may write and any start may remove."""
    return {path: disk.content(path) for path in disk.paths() if not is_index(path)}


def _redone(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files once the writes of the redo file were done once more."""
    found = dict(files)
    for path, start, data in decode(files.get(PATH, b"")):
        content = found.get(path, b"").ljust(start, b"\0")
        found[path] = content[:start] + data + content[start + len(data) :]
    return found


def _keeps_evidence(
    before: dict[str, bytes], after: dict[str, bytes], logs: list[str], where: str
) -> None:
    """Whatever opening has taken from the segments of a log is in quarantine.

    A transaction that was found whole is written over what is left of its writes: nothing of them
    has to be kept.
    """
    before = _redone(before)
    kept = [content for path, content in after.items() if path.startswith("quarantine/")]
    for path, content in before.items():
        if path.split("/")[1:2] and path.split("/")[1] in logs and content:
            left = after.get(path, b"")
            assert content.startswith(left), f"{where}: {path} was written to"
            gone = content[len(left) :].rstrip(unused(0, 8))
            copied = not gone or any(gone in each for each in kept)
            assert copied, f"{where}: there is no copy of what ended {path}"


def _storms(states: int, first: int) -> Tally:
    """Scripts of every shape in turn, until so many states were judged."""
    print(f"power loss: scripts from seed {first}, {states} states")  # noqa: T201 - for a replay
    tally = Tally()
    seed = first
    shapes = list(SHAPES.values())
    while tally.states < states:
        Storm(seed, shapes[seed % len(shapes)], tally).run()
        seed += 1
    print(f"power loss: {tally}")  # noqa: T201 - the count that is asked for
    return tally


@pytest.mark.timeout(1_800)
def test_nothing_confirmed_is_lost_when_the_power_goes() -> None:
    tally = _storms(STATES, FIRST)
    assert tally.states >= STATES
    assert tally.confirmed > tally.sent // 2 > 0, "hardly anything was confirmed"
    assert tally.cuts > 10, "recovery was hardly interrupted"
    assert tally.went_on > 10, "work hardly went on"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_nothing_confirmed_is_lost_in_a_million_power_losses() -> None:
    _storms(SOAK_STATES, 1_000_000)


# --- the harness finds what is planted ----------------------------------------------------------


class _LyingFile(SimFile):
    """A file whose sync does nothing."""

    def sync(self) -> None:
        self._step("sync")


class _NoFileSync(SimDisk):
    """A disk that says that a file is synced when it is not."""

    together = 1 << 30

    def open(self, path: str, *, create: bool = False) -> SimFile:
        file = super().open(path, create=create)
        file.__class__ = _LyingFile
        return file


class _NoNameSync(SimDisk):
    """A disk that says that names are synced when they are not."""

    together = 1 << 30

    def sync_directory(self, directory: str) -> None:
        self.step("sync_directory", directory)


class _NoSyncAll(SimDisk):
    """A disk that says that everything is synced when it is not."""

    def sync_all(self, files: Sequence[File], directories: Sequence[str]) -> None:
        self.step("sync_all", "")


@pytest.mark.parametrize("liar", [_NoFileSync, _NoNameSync, _NoSyncAll])
def test_a_disk_that_lies_about_its_syncs_is_found_out(liar: type[SimDisk]) -> None:
    storm = Storm(2, SHAPES["mixed"], Tally())
    storm.disk = liar()
    storm.definitions = SimDefinitions(storm.disk)
    with pytest.raises(Broken, match="lost"):
        storm.run()


def _every_script_of(shape: str, count: int) -> None:
    for seed in range(count):
        Storm(seed, SHAPES[shape], Tally()).run()


def test_a_transaction_without_its_redo_file_is_found_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Batch, "_write_redo", lambda batch: None)
    with pytest.raises(Broken, match="split: a transaction"):
        _every_script_of("transactions", 20)


# --- what was found once ------------------------------------------------------------------------


def _life(disk: SimDisk, definitions: SimDefinitions, accounts: Accounts, number: int) -> Life:
    life = Life(disk, definitions, accounts, number)
    life.recover()
    return life


def _images(life: Life, accounts: Accounts, number: int) -> list[Life]:
    """Lives after many power losses at this moment."""
    found = []
    for seed in range(50):
        image = life.disk.crash(Random(seed))
        rows = life.definitions.crash(image, Random(seed))
        found.append(_life(image, rows, accounts.copy(), number))
    return found


def test_the_first_confirmed_message_of_all_survives() -> None:
    disk, accounts, rng = SimDisk(), Accounts(), Random(1)
    life = _life(disk, SimDefinitions(disk), accounts, 0)
    identity = life.new_log()
    life.append(identity, 10, True, rng)
    assert life.commit()
    for other in _images(life, accounts, 1):
        picture = other.look("first")
        assert len(picture) == 1
        other.judge("first", picture)


def test_messages_delivered_before_a_crash_keep_their_mark_over_a_clean_end() -> None:
    disk, accounts, rng = SimDisk(), Accounts(), Random(1)
    definitions = SimDefinitions(disk)
    life = _life(disk, definitions, accounts, 0)
    identity = life.new_log()
    for _ in range(5):
        life.append(identity, 10, True, rng)
    assert life.commit()
    while life.deliver(identity):
        pass
    disk = disk.copy()
    definitions = definitions.crash(disk, rng)
    life = _life(disk, definitions, accounts, 1)
    assert life.deliver(identity)
    assert life.stop()
    last = Life(disk, definitions, accounts, 2, clean=True)
    last.recover()
    assert last.logs[identity].seen() == 5


def test_a_segment_that_was_never_finished_leaves_nothing_to_repair_at_the_next_start() -> None:
    disk, accounts, rng = SimDisk(), Accounts(), Random(1)
    definitions = SimDefinitions(disk)
    life = _life(disk, definitions, accounts, 0)
    identity = life.new_log(segment_bytes=512)
    for _ in range(5):
        life.append(identity, 100, True, rng)
    assert life.commit()
    *_, before, newest = [path for path in disk.paths() if path.startswith("queues/")]
    disk.replace(newest, bytes(len(disk.content(newest))))
    disk.replace(before, disk.content(before)[:-20])
    once = _life(disk, definitions, accounts, 1)
    assert any("torn" in text for text in once.damages())
    files = _files(disk)
    again = _life(disk, definitions, accounts, 2)
    assert not again.damages()
    assert _files(disk) == files
    assert again.look("again") == once.look("once")


def test_the_files_of_a_deleted_log_do_not_come_back() -> None:
    disk, accounts, rng = SimDisk(), Accounts(), Random(1)
    life = _life(disk, SimDefinitions(disk), accounts, 0)
    identity = life.new_log()
    life.append(identity, 10, True, rng)
    assert life.commit()
    life.delete_log(identity)
    for _ in range(3):
        assert life.commit()
    assert not list(life.definitions.load("dropped"))
    for other in _images(life, accounts, 1):
        assert not other.damages(), other.damages()


def test_positions_of_lost_messages_are_not_given_out_again_before_what_speaks_of_them() -> None:
    disk, accounts, rng = SimDisk(), Accounts(), Random(1)
    definitions = SimDefinitions(disk)
    life = _life(disk, definitions, accounts, 0)
    identity = life.new_log()
    life.append(identity, 10, True, rng)
    assert life.commit()
    [path] = [path for path in disk.paths() if path.startswith("queues/")]
    whole = len(disk.content(path))
    for _ in range(3):
        life.append(identity, 600, True, rng)
    life.deliver(identity)
    while life.deliver(identity):
        life.settle(identity, 1)
    life.gather()
    life.batch.perform()
    # Of the batch that nobody was told of, only its end reached the disk: three are settled.
    content = disk.content(path)
    disk.replace(path, content[:whole] + bytes(1800) + content[whole + 1800 :])
    known = accounts.copy()
    life = _life(disk, definitions, known, 1)
    for _ in range(3):
        life.append(identity, 10, True, rng)
    assert life.commit()
    other = _life(disk, definitions, known, 2)
    other.judge("once more", other.look("once more"))

"""What a process knows of its cluster: the owners of the stores, and where each vhost lives.

A thread reads what the stores share (`shared.py`) whenever it has changed, and a few times per
lease. So looking something up is a look at a dict, and a change of another process is known within
milliseconds.

A change that has to be known before its command is answered (a new vhost, a new user) is written
with a new version, and waits until every owner that serves has acknowledged that version.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent import futures
from typing import Any, NamedTuple, TypeVar

from harebell.base.errors import StoreError
from harebell.cluster.limits import (
    CLUSTER_FIRST_SECONDS,
    CLUSTER_KNOWN_SECONDS,
    CLUSTER_LOAD_SECONDS,
    CLUSTER_LOOK_SECONDS,
)
from harebell.cluster.shared import CLUSTER_SCHEME, OwnerRow, Shared
from harebell.cluster.stores import FIRST_STORE, RUNNING, ClusterAddress

FINGERPRINT = "fingerprint"
"""The key of the fingerprint of its certificate."""
_RETRY_SECONDS = 0.25
_ACKNOWLEDGED_LOOK_SECONDS = 0.003
_T = TypeVar("_T")


class View(NamedTuple):
    """What was shared at one moment.

    Args:
        version: of what is shared.
        owners: by the number of the store.
        vhosts: the store of each vhost.
        users: all users, as the owner of store 1 has written them.
        service: whether workers accept clients.
    """

    version: int = -1
    owners: dict[int, OwnerRow] = {}
    vhosts: dict[str, int] = {}
    users: str = ""
    service: str = RUNNING


class ClusterDirectory:
    """Knows the cluster, and changes what its stores share.

    Args:
        shared: what they share.
        number: of the store of this process.
        report: called in any thread with a level and a line.

    Attributes:
        number: as given.
        stores: how many there are.
        secret: what the brokers of the cluster know each other by; b"" before `start` has ended.
        view: what was read last.
        changed: awaited in the event loop after a change; the version is acknowledged when it has
            ended.
    """

    def __init__(
        self,
        shared: Shared,
        number: int,
        report: Callable[[str, str], None],
    ) -> None:
        self.number = number
        self.stores = shared.stores
        self.secret = b""
        self.view = View()
        self.changed: Callable[[View], Awaitable[None]] = _nothing
        self._shared = shared
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._epoch = 0
        self._acknowledged = -1
        self._failure = ""
        self._taking: futures.Future[None] | None = None
        self._users: str | None = None
        self._refusal = ""
        self._one_taking = asyncio.Lock()
        self._load = _Load()
        self._beyond: tuple[str, int] | None = None
        self._beyond_read_at = 0.0
        self._beyond_reported = ""
        self._over = threading.Event()
        self._ready = asyncio.Event()
        self._thread = threading.Thread(target=self._follow, name="cluster", daemon=True)

    async def start(self, epoch: int = 0) -> None:
        """Begin to read, and wait for the first view.

        Args:
            epoch: of the claim of this process on its store; 0 for a standby.

        Raises:
            StoreError: they cannot be read within a lease, or much longer if nothing says why.
        """
        self._epoch = epoch
        self._thread.start()
        for seconds in (self._shared.patience, CLUSTER_FIRST_SECONDS):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._ready.wait()
                return
            if self._failure:
                break
        self.close()
        raise StoreError(
            f"the tables of the cluster cannot be read: {self._failure or 'no answer'}"
        )

    def close(self) -> None:
        """Read no more."""
        self._over.set()

    def store_of(self, vhost: str) -> int | None:
        """Return the store that a vhost lives in; None if there is no such vhost."""
        return self.view.vhosts.get(vhost)

    def is_elsewhere(self, vhost: str) -> bool:
        """True if a vhost lives in another store than that of this process."""
        return self.view.vhosts.get(vhost, self.number) != self.number

    def address_of(self, store: int) -> ClusterAddress | None:
        """Return where the owner of a store is reached; None while it has none that serves."""
        owner = self.view.owners.get(store)
        address = "" if owner is None else owner.addresses.get(CLUSTER_SCHEME, "")
        if owner is None or not address:
            return None
        return ClusterAddress(owner.epoch, address, owner.addresses.get(FINGERPRINT, ""))

    async def place(self, vhost: str, store: int | None = None) -> int:
        """Return the store for a new vhost, which every owner knows then.

        Args:
            vhost: its name.
            store: its number; None for the one whose owner has the least to do.

        Raises:
            StoreError: what is shared cannot be used.
        """
        chosen = self._lightest() if store is None else store
        return await self._change(lambda link: self._shared.place(link, vhost, chosen))

    async def forget(self, vhost: str) -> None:
        """Remove a vhost that was deleted.

        Raises:
            StoreError: what is shared cannot be used.
        """
        await self._change(lambda link: self._shared.forget(link, vhost))

    async def keep(self, vhost: str) -> None:
        """Write down that a vhost is in the store of this process.

        Raises:
            StoreError: what is shared cannot be used.
        """
        await self._change(lambda link: self._shared.place(link, vhost, self.number))

    async def register(self, vhosts: set[str]) -> None:
        """Write down which vhosts the store of this process has, before it serves.

        Raises:
            StoreError: what is shared cannot be used.
        """
        await self._change(lambda link: self._shared.register(link, self.number, vhosts))

    async def write_users(self, users: str) -> None:
        """Replace the users; every owner knows them then.

        Raises:
            StoreError: what is shared cannot be used, or store 1 has another owner.
        """
        # The view may be older than what was written last.
        if users == (self.view.users if self._users is None else self._users):
            return
        # If the change fails its outcome is unknown: the next call has to write again.
        self._users = ""
        if not await self._change(lambda link: self._shared.write_users(link, users, self._epoch)):
            raise StoreError("the users were not changed: store 1 has another owner now")
        self._users = users

    async def write_service(self, state: str) -> None:
        """Change whether all workers accept clients; those that serve act on it then.

        Raises:
            StoreError: what is shared cannot be used.
        """
        await self._change(lambda link: self._shared.write_service(link, state))

    def _lightest(self) -> int:
        counts = dict.fromkeys(range(FIRST_STORE, FIRST_STORE + self.stores), 0)
        for store in self.view.vhosts.values():
            counts[store] = counts.get(store, 0) + 1
        owners = self.view.owners

        def busy(store: int) -> tuple[bool, float, int, int]:
            owner = owners.get(store)
            # Rounded: among stores that are about equally busy the number of vhosts decides.
            share = 0.0 if owner is None else round(owner.load, 1)
            return owner is None or not owner.serves, share, counts[store], store

        return min(range(FIRST_STORE, FIRST_STORE + self.stores), key=busy)

    async def _change(self, work: Callable[[Any], _T]) -> _T:
        """Change the shared tables, and wait until the owners that serve know it."""

        def changed() -> _T:
            try:
                with self._shared.connect() as link:
                    done = work(link)
                    self._wait_for_owners(link)
                    return done
            except self._shared.errors as error:
                raise StoreError(self._shared.reason(error)) from None

        return await asyncio.to_thread(changed)

    def _wait_for_owners(self, link: Any) -> None:
        """Wait until all owners have acknowledged the present version.

        One that does not within a lease loses its store: the next owner reads everything before it
        serves.
        """
        version = self._shared.version(link)
        until = time.monotonic() + max(CLUSTER_KNOWN_SECONDS, self._shared.patience)
        while time.monotonic() < until:
            serving = [each for each in self._shared.owners(link).values() if each.serves]
            if all(each.version >= version for each in serving):
                return
            time.sleep(_ACKNOWLEDGED_LOOK_SECONDS)

    def _follow(self) -> None:
        """Read whenever something has changed, and regularly."""
        failure = ""
        while not self._over.is_set():
            try:
                with self._shared.connect() as link:
                    self._shared.prepare(link)
                    self.secret = self._shared.secret(link)
                    while not self._over.is_set():
                        self._look(link)
                        self._look_beyond(link)
                        if failure:
                            failure = ""
                            self._report("info", "the tables of the cluster can be read again")
                        self._shared.wait(link, CLUSTER_LOOK_SECONDS)
            except Exception as error:  # whatever a row has in it, it is read again
                text = self._shared.reason(error)
                self._failure = text
                if text != failure and self._ready.is_set():
                    failure = text
                    self._report("warning", f"cannot read the tables of the cluster: {text}")
                self._over.wait(_RETRY_SECONDS)

    def _look(self, link: Any) -> None:
        """Read what has changed, and acknowledge what was taken over."""
        before = self.view
        version, owners = self._shared.version(link), self._shared.owners(link)
        if version != before.version:
            shared = self._shared
            vhosts, users = shared.vhosts(link), shared.users(link)
            view = View(version, owners, vhosts, users, shared.service(link))
        else:
            view = before._replace(owners=owners)
        if version != before.version or not self._ready.is_set() or self._refusal:
            # Before the broker acts on it, which may take a while: look-ups need it now.
            self.view = view
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._taking = asyncio.run_coroutine_threadsafe(self._take_over(view), self._loop)
                futures.wait((self._taking,), CLUSTER_KNOWN_SECONDS)
        self.view = view
        # A standby serves no clients, and an owner acknowledges only what it acts on: the command
        # that made the change waits for that, and its client may go on anywhere then.
        if not self._epoch or self._taking is None or not self._taking.done():
            return
        if self._is_refused(self._taking):
            return
        if self._acknowledged != version or self._load.is_due():
            self._acknowledged = version
            share = self._load.share()
            self._shared.acknowledge(link, self.number, self._epoch, version, share)

    def _is_refused(self, taking: futures.Future[None]) -> bool:
        """True if the broker could not act on the view: then it is not acknowledged."""
        error = None if taking.cancelled() else taking.exception()
        previous, self._refusal = self._refusal, "" if error is None else str(error) or repr(error)
        if self._refusal and self._refusal != previous:
            self._report("error", f"a change in the cluster was not taken over: {self._refusal}")
        return bool(self._refusal)

    def _look_beyond(self, link: Any) -> None:
        """Warn of a machine that has more stores: what is in them cannot be reached from here."""
        if not self._epoch or time.monotonic() - self._beyond_read_at < CLUSTER_LOAD_SECONDS:
            return
        self._beyond_read_at = time.monotonic()
        before, self._beyond = self._beyond, self._shared.owner_beyond(link)
        if self._beyond is None or before is None or before == self._beyond:
            return  # it has none, or one that has gone without giving it back
        owner = self._beyond[0]
        if owner != self._beyond_reported:
            self._beyond_reported = owner
            self._report(
                "error",
                f"storage_stores is {self.stores} here, and broker '{owner}' serves store "
                f"{self.stores + 1}: its vhosts cannot be reached from here; set storage_stores to "
                "the same number on every machine",
            )

    async def _take_over(self, view: View) -> None:
        """Let the broker act on a view; runs in the event loop."""
        try:
            # One after the other, or users of an earlier view would come back.
            async with self._one_taking:
                await self.changed(view)
        finally:
            self._ready.set()


async def _nothing(_: View) -> None:
    """Do nothing about a change."""


class _Load:
    """The share of a core that the process has used in the last CLUSTER_LOAD_SECONDS; 0 before."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._used = time.process_time()
        self._share = 0.0

    def is_due(self) -> bool:
        """True if there is a new figure to write."""
        return time.monotonic() - self._since >= CLUSTER_LOAD_SECONDS

    def share(self) -> float:
        """Return the share. What a start takes says nothing about clients, so it is left out."""
        if self.is_due():
            now, used = time.monotonic(), time.process_time()
            self._share = (used - self._used) / (now - self._since)
            self._since, self._used = now, used
        return self._share

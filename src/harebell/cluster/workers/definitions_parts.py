"""The definitions that a broker with several workers loads at its start, a part for each store.

The supervisor reads the sources once, before it starts a worker: a source that cannot be read, or
has no definitions, ends the start. It chooses the store of each new vhost, so that every worker
knows them all before the first client comes. Each worker then imports its part before it serves, as
a broker with one store does with the whole. Each of them may commit its part alone, so the whole is
tried here before: a mistake in it changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from harebell.admin.definitions.importer import try_on_new
from harebell.base.slices import at_once
from harebell.cluster.definitions_import import SHARED_SECTIONS, VHOSTS, parts_of
from harebell.cluster.stores import FIRST_STORE
from harebell.server.loaded_definitions import Sources, parsed, read_sources
from harebell.server.new_vhosts import complaint_of

if TYPE_CHECKING:
    from harebell.config import Config

_USERS = "users"


def read_parts(config: Config, vhosts: dict[str, int], users: Iterable[str]) -> dict[int, Sources]:
    """Return the part of each store of what the configuration names.

    Args:
        config: names the sources, and the vhost that a new broker has.
        vhosts: the store of each vhost; gets those of the new ones.
        users: the names of the users that there are.

    Raises:
        DefinitionsError: a source cannot be read, or an entry is invalid.
    """
    sources = read_sources(config)
    documents = [(name, parsed(name, content)) for name, content in sources.contents]
    try_on_new(
        documents,
        {
            VHOSTS: [{"name": each} for each in {config.default_vhost, *vhosts}],
            _USERS: [{"name": each, "password_hash": ""} for each in users],
        },
        config.default_queue_type.replace("classic", ""),
        lambda name, password: complaint_of(config, name, password),
    )
    stores = range(FIRST_STORE, FIRST_STORE + config.storage_stores)
    # A new broker makes it in store 1, whose exchanges have the events.
    vhosts.setdefault(config.default_vhost, FIRST_STORE)
    for _, document in documents:
        _place(document, vhosts, stores)
    parts = {store: Sources([], sources.digest) for store in stores}
    for name, document in documents:
        shared = {each: document[each] for each in SHARED_SECTIONS if each in document}
        divided: dict[int, dict[str, Any]] = at_once(parts_of(document, FIRST_STORE, vhosts.get))
        if shared:
            divided.setdefault(FIRST_STORE, {})
        for store, part in divided.items():
            if store == FIRST_STORE:
                part.update(shared)
            elif _USERS in shared:
                # Permissions may be those of new users. Store 1 copies its own over them.
                part[_USERS] = shared[_USERS]
            parts[store].contents.append((name, msgspec.json.encode(part)))
    return parts


def _place(document: dict[str, Any], vhosts: dict[str, int], stores: range) -> None:
    """Choose a store for each new vhost: the one with the fewest."""
    counts = Counter(vhosts.values())
    entries = document.get(VHOSTS)
    for entry in entries if isinstance(entries, list) else ():
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str) and name not in vhosts:
            vhosts[name] = min(stores, key=lambda store: (counts[store], store))
            counts[vhosts[name]] += 1

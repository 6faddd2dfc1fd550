"""Open Iceberg catalogs: of an SQL database, over REST, or by a name that pyiceberg knows.

sqlite:///lake/catalog.db, postgresql+psycopg://...   a database
https://catalog.example                               the REST protocol of Iceberg
prod                                                  a catalog of .pyiceberg.yaml
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harebell.pipeline.errors import PipelineError

DEFAULT_NAME = "default"
"""The name of a catalog with an address: a database keeps the tables of each name apart."""
_SHORTEST_SECRET = 3
_PASSWORD = re.compile(r"://[^/@\s]*@")
_SQLITE = "sqlite:///"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+]*://.+")
_SQL = ("sqlite", "postgresql")
_TABLE = re.compile(r"[^.\s]+(\.[^.\s]+)+")


@dataclass(frozen=True)
class CatalogPlace:
    """Where the catalog of an Iceberg table is.

    Args:
        catalog: an address, or a name.
        warehouse: where new tables are stored; "" lets the catalog choose.
        properties: more properties of the catalog, such as a token.
    """

    catalog: str
    warehouse: str = ""
    properties: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """The address without any password."""
        return _PASSWORD.sub("://***@", self.catalog)


PROPERTY = "catalog."
"""What the names of a catalog's properties begin with in the options of a sink."""


def place_of(options: Mapping[str, str]) -> CatalogPlace:
    """Return the catalog for the options of a checked sink."""
    properties = {
        name.removeprefix(PROPERTY): value
        for name, value in options.items()
        if name.startswith(PROPERTY)
    }
    return CatalogPlace(options["catalog"], options.get("warehouse", ""), properties)


def wrong_catalog(text: str) -> str:
    """Return why a text is no catalog; "" if it is one."""
    if _NAME.fullmatch(text):
        return ""
    scheme = text.partition("://")[0].partition("+")[0]
    if _ADDRESS.fullmatch(text) and scheme in (*_SQL, "http", "https"):
        return ""
    return (
        f"catalog must be sqlite:///FILE, postgresql+psycopg://..., https://... or a name of "
        f".pyiceberg.yaml, not {_PASSWORD.sub('://***@', text)}"
    )


def wrong_table(text: str, catalog: str) -> str:
    """Return why a text is no name of an Iceberg table in a catalog; "" if it is one."""
    if not _TABLE.fullmatch(text):
        return f"iceberg must be NAMESPACE.TABLE, not {text!r}"
    if catalog.startswith(_SQL) and text.count(".") > 1:
        return f"iceberg must be NAMESPACE.TABLE, not {text!r}: a database has no inner namespaces"
    return ""


def placed(catalog: str, warehouse: str, base: Path) -> tuple[str, str]:
    """Return a catalog and its warehouse, with paths relative to a directory made absolute.

    The default warehouse of a database in a file is the directory of that file.
    """
    if catalog.startswith(_SQLITE):
        file = base / Path(catalog.removeprefix(_SQLITE)).expanduser()
        catalog = f"{_SQLITE}{file}"
        warehouse = warehouse or str(file.parent)
    if warehouse and "://" not in warehouse:
        warehouse = str(base / Path(warehouse).expanduser())
    return catalog, warehouse


def check_file(place: CatalogPlace) -> None:
    """Check that the file of a catalog exists, which SQLite would make without a word.

    Raises:
        PipelineError: it does not exist.
    """
    if place.catalog.startswith(_SQLITE):
        file = Path(place.catalog.removeprefix(_SQLITE).partition("?")[0])
        if not file.is_file():
            raise PipelineError(
                f"there is no Iceberg catalog at {file}: the file does not exist; correct --catalog"
            )


def iceberg() -> Any:
    """Return the module `pyiceberg`.

    Raises:
        PipelineError: it is not installed.
    """
    try:
        import pyiceberg.catalog
    except ImportError:
        raise PipelineError(
            "Iceberg tables need pyiceberg: pip install 'harebell[iceberg]'"
        ) from None
    return pyiceberg


def opened(place: CatalogPlace) -> Any:
    """Return a catalog.

    Raises:
        PipelineError: it cannot be opened.
    """
    catalog = iceberg().catalog
    given = {"warehouse": place.warehouse} if place.warehouse else {}
    with catalog_errors(place, f"the Iceberg catalog {place.shown} cannot be opened"):
        if "://" not in place.catalog:
            return catalog.load_catalog(place.catalog, **given, **place.properties)
        if place.catalog.startswith(_SQLITE):
            # SQLite makes the file, but not its directory.
            Path(place.catalog.removeprefix(_SQLITE)).parent.mkdir(parents=True, exist_ok=True)
        kind = "rest" if place.catalog.startswith("http") else "sql"
        properties = {"type": kind, "uri": place.catalog, **given, **place.properties}
        return catalog.load_catalog(properties.pop("name", DEFAULT_NAME), **properties)


def loaded(catalog: Any, name: str) -> Any:
    """Return a table; None if there is none."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        return catalog.load_table(name)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None


@contextmanager
def catalog_errors(place: CatalogPlace, what: str) -> Iterator[None]:
    """Convert errors of the catalog, of its database and of the file system.

    They come from as many libraries as there are catalogs and file systems, without a common base.

    Args:
        place: the catalog; its password is not shown.
        what: beginning of the sentence.
    """
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
        reason = _PASSWORD.sub("://***@", reason or type(error).__name__)
        for name, value in place.properties.items():
            # A secret of three letters would be found in every word.
            if len(value) > _SHORTEST_SECRET and any(
                word in name for word in ("token", "secret", "credential", "key")
            ):
                reason = reason.replace(value, "***")
        raise PipelineError(
            f"{what}: {reason[:300]}; a micro-batch is not lost by this, and is written when the "
            "pipeline runs again"
        ) from error

"""Harebell: an AMQP broker, client and data pipeline.

Importing the package only fixes which implementation runs (see `harebell.base.impl`); everything
else is imported where it is used, so that a command starts quickly.
"""

from __future__ import annotations

from os import environ as _environ

from harebell.base import impl as _impl
from harebell.base.version import VERSION

__version__ = VERSION

_impl.choose(_environ.get("HAREBELL_IMPL", ""))

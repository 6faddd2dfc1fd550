"""The composites of AMQP 1.0 as typed values, from the table in `harebell.wire.v1.tables`.

Editors and type checkers find their fields in `composites.pyi`, which `tools/method_stubs.py`
writes.
"""

from harebell.wire.v1.tables import COMPOSITES

globals().update({spec.type.__name__: spec.type for spec in COMPOSITES.values()})

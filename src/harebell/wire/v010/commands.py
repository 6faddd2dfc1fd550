"""The commands of AMQP 0-10 as typed values, from the table in `harebell.wire.v010.amqp_0_10`.

Editors and type checkers find their fields in `commands.pyi`, which `tools/method_stubs.py` writes.
"""

from harebell.wire.v010.amqp_0_10 import AMQP_0_10

globals().update({spec.type.__name__: spec.type for spec in AMQP_0_10.commands.values()})

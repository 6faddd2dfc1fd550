"""The methods as typed values, so that the front and the client never touch an octet.

One class per method, named after it: `queue.declare-ok` is `QueueDeclareOk`. The attributes are
the specification's fields with underscores, in its order; `no-wait` is `nowait`, `global` is
`global_`. The ticket, which only older versions have, comes last. A version that lacks a field
leaves the attribute at its default.

`harebell.wire.v09.spec` makes the classes from the tables of the versions. Editors and type
checkers find their fields in `methods.pyi`, which `tools/method_stubs.py` writes. Methods that
0-9-1 lacks are in `methods_older` (0-8, 0-9) and `methods_transitional` (transitional 0-10).
"""

from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.method import Method as Method
from harebell.wire.v09.spec import own_types

globals().update(own_types(__name__, AMQP_0_9_1))

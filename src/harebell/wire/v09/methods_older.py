"""The methods that 0-8 and 0-9 have and 0-9-1 has not; see `harebell.wire.v09.methods`.

Some are those of the published documents: the classes file, stream, dtx, tunnel and test. The
others Qpid's clients and brokers of the time had beside them: exchange.bound, and a basic.recover
that is answered.
"""

from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.spec import own_types

globals().update(own_types(__name__, AMQP_0_8, AMQP_0_9))

"""The server's side of the 0-9-1 family: one connection per peer, one file per AMQP class."""

"""The shell of the broker: sockets, TLS, clocks, signals, and no AMQP decision."""

"""The shell of the broker: sockets, TLS, clocks, signals. It moves bytes and takes no AMQP decision."""

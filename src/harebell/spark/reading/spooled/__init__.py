"""Read a queue over plain AMQP: a consumer on the driver, and its spool on disk."""

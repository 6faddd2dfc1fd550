"""What every version of AMQP does the same way: checks, permissions, limits, events, durability."""

"""Sessions of transitional 0-10: one file per AMQP class, over those of 0-9."""

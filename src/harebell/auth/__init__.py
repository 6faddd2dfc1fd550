"""Authentication: users, password hashes, SASL mechanisms."""

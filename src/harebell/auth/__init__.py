"""Who may connect: users, password hashes, SASL mechanisms."""

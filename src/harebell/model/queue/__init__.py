"""Queue kinds, one per file, behind the contract in `kind`."""

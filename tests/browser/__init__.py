"""The web interface in a real browser, against a running broker."""

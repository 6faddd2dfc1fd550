"""Every test of Harebell; a package, so that no other package named tests can stand before it."""

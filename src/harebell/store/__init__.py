"""Where messages are kept, behind the `Log` interface of `harebell.base.ports`."""

"""What versions share: connections, limits, permissions, events and turns."""

"""What the connections and channels of every version share: limits, permissions, events, turns."""

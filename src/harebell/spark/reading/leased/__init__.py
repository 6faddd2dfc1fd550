"""Read a queue by leases: open its group, claim messages, and commit claims."""

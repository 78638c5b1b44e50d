"""Tasks carried by a Temporal server: it replaces claims, leases and timers, and nothing else."""

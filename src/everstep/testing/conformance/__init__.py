"""One suite per port, for every answer to it: ours, and yours."""

"""Where tasks live: one folder or file per kind of store, and what they share."""

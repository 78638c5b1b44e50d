"""What this is called among its releases; the one place that says so."""

__version__ = "0.1.0"

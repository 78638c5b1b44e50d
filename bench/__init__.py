"""Figures with floors: `python -m bench`, or `make bench`."""

"""A release: tests, a new version, a tag, a publication; rejected once, and done better in a fork."""

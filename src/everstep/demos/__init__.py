"""Scenarios that can be watched and broken, offline: one folder each, on the public doors only."""

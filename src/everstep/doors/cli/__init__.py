"""The terminal's door. Every command speaks `/v1` to an engine: its own, or the one that holds the store."""

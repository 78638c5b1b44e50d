"""Domain facts as JSON and YAML, and back. Pure; versioned by addition; the home of msgspec."""

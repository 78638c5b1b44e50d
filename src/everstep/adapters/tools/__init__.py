"""Tools, one family per file. A family knows its own protocol and the ports, never another family."""

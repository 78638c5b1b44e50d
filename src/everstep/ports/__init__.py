"""What the engine asks of the outside: Protocols and plain records, no behaviour.

One file per question; the answers live in `adapters/`.
"""

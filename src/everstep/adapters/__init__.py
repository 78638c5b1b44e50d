"""The answers to the ports: stores, tools, clock, chance. Strangers to each other, put together in `bootstrap`."""

"""Facts and rules. Pure: no await, clock, randomness, I/O, logging or third party.

Files are nouns. Rules are tables where they can be; everything here can be tested by calling it.
"""

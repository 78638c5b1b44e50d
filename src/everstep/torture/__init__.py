"""The kill harness and its judge: engines are killed from outside, histories judged by code they do not share.

`checker`, `history`, `fold` and `effects` use the standard library only and import nothing of ours but each other: a
mistake that the judge shared with the judged would never be found.
"""

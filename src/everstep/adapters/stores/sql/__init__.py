"""What every store on a database shares: which units there are, what each writes, what is asked, how rows are read.

store.py      the verbs of the port
apply.py      what each kind of unit does inside the writer's transaction (also take, toll, signals, handles, ...)
desk.py       the writer's connection inside a transaction, as units see it
hold.py       what an open store consists of
questions.py  what is asked of a reader
audit.py      is every journal dense, linked, and does its row follow from it
rows.py       rows <-> domain
queries.sql   statements that mean the same on every database
"""

"""The store of a fleet: one PostgreSQL, any number of engines. What any database does is in `../sql`.

store.py     the verbs that only a shared database has
ledger.py    the writer's side: one transaction per batch; what became of a COMMIT whose answer was lost
bulk.py      a whole batch of holders' commits in a few statements
desk.py      the writer's connection inside a transaction
readers.py   connections that only read
pulse.py     beats, on a connection of their own
news.py      what others have written: listened for, and looked for
payloads.py  payloads by content, in the database
migrate.py   numbered SQL, forward and back, one at a time
connect.py   how a connection is opened; how foreign errors are translated
queries.sql  statements that only PostgreSQL understands
"""

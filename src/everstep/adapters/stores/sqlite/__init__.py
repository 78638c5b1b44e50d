"""The embedded store: one SQLite file, one engine, one writer thread. What any database does is in `../sql`.

store.py     the verbs that only a file has
ledger.py    the writer's side: one transaction per batch, guards in memory, fail-stop
bulk.py      a whole batch of holders' commits in a few statements
readers.py   read-only connections and what is read through them
artifacts.py payloads by content, beside the database
keeping.py   check and backup
migrate.py   numbered SQL, forward and back; which files are refused
lock.py      one engine per file
connect.py   how a connection is opened; how foreign errors are translated
queries.sql  statements that only SQLite understands
"""

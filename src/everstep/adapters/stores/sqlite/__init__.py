"""The embedded store: one SQLite file, one engine, one writer thread.

store.py     the verbs of the port
ledger.py    the writer's side: one transaction per batch, guards in memory, fail-stop
apply.py     what each kind of unit does inside that transaction
readers.py   read-only connections and what is read through them
artifacts.py payloads by content, beside the database
keeping.py   check and backup
migrate.py   numbered SQL, forward and back; which files are refused
lock.py      one engine per file
connect.py   how a connection is opened; how foreign errors are translated
rows.py      rows <-> domain
queries.sql  every statement, named
"""

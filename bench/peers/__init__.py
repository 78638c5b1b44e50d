"""Workload W by others, in the same run: `python -m bench.peers`, or `make bench-peers`.

Each peer has an environment of its own below a cache folder (never committed) and one small script, `with_NAME.py`. All
carry the very same tool body in the very same lanes (`bench.workload`), on a real disk, with full durability:

everstep    SQLite WAL with synchronous=FULL, or PostgreSQL as it comes (fsync and synchronous_commit on); feed and
            estimates on; 100 tasks at a time
bare        what the journal would cost without an engine around it: `bench.bare_writer`, `bench.peers.bare_pg`
DBOS        as shipped: SQLite with its rollback journal and synchronous=FULL, or PostgreSQL; every step is recorded
            when it ends (no intent before the call: weaker than W); pool of 20 as by default
LangGraph   a graph of ten nodes that keeps the last result, `durability="sync"`: a checkpoint before the next node; no
            intent, no recovery of its own (weaker than W); `AsyncSqliteSaver`, or `AsyncPostgresSaver` on a pool of 16
Restate     its server on this machine with its own log, one handler of ten `ctx.run` steps
Temporal    the dev server on a SQLite file, ten ordinary activities
Prefect     its server on SQLite; results persisted; the records of a step are sent behind it (weaker than W)

A cell that would take too long is cut, and its rate is that of what was done until then; its row says so.
"""

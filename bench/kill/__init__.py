"""The kill harness over other engines: `python -m bench.kill`, one command for all of them.

The harness, the ledger and the workload are those of `everstep.torture`; each engine has a program of its own here,
which runs in an environment where only that engine is installed, is killed with its whole process group, and started
again as its guide says.
"""

"""The walk: order in time. Of ours it imports only domain and ports; files are verbs. Read `walk.py` first."""

"""MCP servers of others: how they are started, reached and talked to. `server.RemoteServer` is the one to use."""

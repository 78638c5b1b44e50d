"""The MCP door: plans published as workflow prompts, tasks on the wire, tools for clients that know neither.

workflow, handoff, bridge, wire25, wire26   what is said, as functions of a task's journal; no SDK in sight
channel, story                              `/v1` of the engine, in this process or another; a journal read from it
prompts, calls, tasks                       what is done for a client
server                                      the one file that speaks the SDK, and only inside functions
"""

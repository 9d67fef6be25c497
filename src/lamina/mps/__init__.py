"""The MPS service: runs the MPS daemons of a node for the agent.

The agent decides which GPUs have a daemon, with which limits. The service only starts, asks and ends daemons, and keeps
nothing in memory that it needs again, so that agent and service can end and start at any time. It is a component of its
own, because a container takes its processes with it when it ends: programs that use MPS would not survive an upgrade of
the agent.

local_daemons   the daemons of this node, each with its shared memory
service         answers the agent, from the start of the component to SIGTERM
"""

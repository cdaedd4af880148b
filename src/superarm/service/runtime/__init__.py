"""The running service: requests are planned, appended to the log, applied after the commit, and then answered.

ask: a decision · feedback: what came of it, and erasure · admin: problems, settings, and items that are learnt ·
coordinator: one lock per problem, under which events are planned, written and applied · writer: the thread that commits
· ownership: which problems this process serves · condition: whether the process can serve
"""

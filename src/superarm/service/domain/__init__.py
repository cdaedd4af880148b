"""The rules of the service: what a problem, a decision and feedback are, and how events change them.

Nothing here reads a clock, a file, a socket or a database, so all of it can be tested in one process.

events: the lines of the log · spec, context_spec, components: a problem as its owner writes it down · problem: the
learner of one problem · learnt: items that it learns · decision: one decision, and the rules of feedback ·
decision_contexts: what is known of users · slate: how a slate is chosen, with which chances · ledger: all problems and
decisions · history, lift, intervals, warnings: what the page shows
"""

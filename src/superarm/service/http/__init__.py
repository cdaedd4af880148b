"""The HTTP interface: a table of operations, their handlers, keys, rate limits, metrics and the OpenAPI document.

``router`` finds the operation of a path, ``endpoint`` reads the request and sends the reply, ``handlers`` call the
runtime, ``views`` turn state into replies, and ``auth`` knows the keys.
"""

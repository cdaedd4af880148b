"""The HTTP interface: a table of operations, their handlers, keys, rate limits, metrics and the OpenAPI document.

operations: the table, and what each operation does · endpoint: from a request to a reply · views: state and log as
replies · service: what all of them share, which are keys, limits and the parts of a request · metrics · openapi
"""

"""The HTTP interface: a table of operations, their handlers, keys, rate limits, metrics and the OpenAPI document.

operations: the table · endpoint: from a request to a reply · handlers, audit: what operations do · views: state as
replies · query: the parts of a request · auth: keys · metrics · openapi · service: what all of them share
"""

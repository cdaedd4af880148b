"""The HTTP interface: routes, request and response schemas, keys, metrics and the OpenAPI document.

Handlers parse a request, call the runtime and encode the answer.
"""

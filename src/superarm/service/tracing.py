"""OpenTelemetry: one span per request, sent by OTLP over HTTP to wherever the standard variables ``OTEL_…`` say."""

from typing import Any

from starlette.routing import compile_path

from superarm.core.errors import MissingExtra
from superarm.service.http.operations import OPERATIONS

_PATTERNS = [(operation.method, compile_path(operation.path)[0], operation.path) for operation in OPERATIONS]
UNNAMED = "unknown_service"
"""How OpenTelemetry begins the name of a service that no variable names."""


def trace_requests(app: Any, provider: Any = None) -> Any:
    """The application with a span around each request; ``provider`` replaces the one that exports by OTLP."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise MissingExtra(str(error.name), "otel") from None
    if provider is None:
        resource = Resource.create()
        if str(resource.attributes.get("service.name", UNNAMED)).startswith(UNNAMED):
            resource = resource.merge(Resource({"service.name": "superarm"}))
        provider = TracerProvider(resource=resource)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))

    return OpenTelemetryMiddleware(
        app,
        tracer_provider=provider,
        exclude_spans=["send", "receive"],
        default_span_details=name_span,
    )


def name_span(scope: Any) -> tuple[str, dict[str, Any]]:
    """The name of a request's span, and further attributes: the operation, without the names that its path holds.

    A backend groups spans by their names, so that ids of decisions must not be in them.

    >>> name_span({"type": "http", "method": "POST", "path": "/bandits/v1/decisions/visit-1/feedback"})
    ('POST /v1/decisions/{id}/feedback', {'http.route': '/v1/decisions/{id}/feedback'})
    >>> name_span({"type": "http", "method": "GET", "path": "/arm"})
    ('GET', {})
    """
    method, path = str(scope.get("method", scope["type"])), str(scope.get("path", ""))
    operation = path[max(0, path.find("/v1/")) :]
    for known, pattern, template in _PATTERNS:
        if known == method and pattern.match(operation):
            return f"{method} {template}", {"http.route": template}
    return method, {}

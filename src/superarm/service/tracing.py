"""OpenTelemetry: one span per request, sent by OTLP over HTTP to wherever the standard variables ``OTEL_…`` say."""

from typing import Any

from superarm.errors import SuperarmError


def trace_requests(app: Any, provider: Any = None) -> Any:
    """The application with a span around each request; ``provider`` replaces the one that exports by OTLP."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise SuperarmError(f"--otel: {error.name} is not installed; pip install 'superarm[otel]'") from None
    if provider is None:
        provider = TracerProvider(resource=Resource.create({"service.name": "superarm"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))

    async def send_by_messages(scope: Any, receive: Any, send: Any) -> None:
        """The application where spans see what it sends."""
        await app({**scope, "extensions": {}}, receive, send)

    return OpenTelemetryMiddleware(send_by_messages, tracer_provider=provider, exclude_spans=["send", "receive"])

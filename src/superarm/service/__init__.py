"""The decision service: ask and tell over HTTP, and lose nothing."""

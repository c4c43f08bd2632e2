"""Runs as OpenTelemetry sees them."""

"""otel: runs as OpenTelemetry spans and metrics. It needs the extra `refold[otel]`, and only OpenTelemetry's API.

    provider = TracerProvider(id_generator=runner.otel.Ids())       # the program's own, of OpenTelemetry's SDK
    telemetry = runner.otel.Telemetry(tracer_provider=provider)
    runner.start_sync(agent, "Pay.", runs="runs", watch=telemetry)  # or: Worker(..., watch=telemetry)

One trace for each run: `invoke_agent` for each life, linked to the life before and to whoever began the run, and in it
`chat` for each request to the model and `execute_tool` for each attempt of a call. The trace context of who began it is
saved with the run, so a life in another process has that link, too. A child run goes on in the span of the call that it
does; a fork has a trace of its own, with a link to its parent's. A watcher sees what was just saved, so nothing is
emitted for what a resume reads from the log; what had begun when a process died has no end, so it is not exported.
Times are those of the log. No text of a model, a tool or a person is in it.

Names are those of the semantic conventions for generative AI, version 0.1.0; ours begin with `refold.`.
"""

from runner.otel._ids import Ids
from runner.otel._observe import observe
from runner.otel._telemetry import Telemetry

__all__ = ["Ids", "Telemetry", "observe"]

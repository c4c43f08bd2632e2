"""Compare logs with each other and with the current code; take a log out without its secrets. Nothing here acts.

`audit` and `guarantees` explain what happened and what would, `retrace` and `preflight` compare a log with the current
agent, `export` and `redact` make histories that others may see, `retrace_export` makes a test of one.
"""

from runner._agent.redact import SECRET_PATTERNS, SecretPattern, redact
from runner._policy.guarantees import Guarantee, guarantees
from runner._review.audit import Audited, audit
from runner._review.call_issues import PreflightIssue
from runner._review.export import BadExport, CannotExport, export, retrace_export
from runner._review.preflight import Preflight, preflight
from runner._review.retrace import retrace

__all__ = [
    "SECRET_PATTERNS",
    "Audited",
    "BadExport",
    "CannotExport",
    "Guarantee",
    "Preflight",
    "PreflightIssue",
    "SecretPattern",
    "audit",
    "export",
    "guarantees",
    "preflight",
    "redact",
    "retrace",
    "retrace_export",
]

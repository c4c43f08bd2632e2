"""Async tests of this folder run in a loop of their own."""

from __future__ import annotations

from tests.support.async_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (pytest finds the hook here)

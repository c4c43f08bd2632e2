"""Tests of what tells a run after the fact: audit, `show --at`, and the report, in a real browser too."""

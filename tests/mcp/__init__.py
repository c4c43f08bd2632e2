"""Tests of MCP: servers whose tools an agent uses, and the server over a directory of runs."""

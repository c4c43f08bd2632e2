"""Tests of tools that speak HTTP."""

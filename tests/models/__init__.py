"""Tests of the models of real vendors, against servers that speak the vendors' protocols over real sockets."""

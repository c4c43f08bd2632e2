"""Tests of the log, one file for each thing it promises, named by the fault it must survive."""

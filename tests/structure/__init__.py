"""Tests of the house: who may import whom, what stays pure, what the wheel holds, what stands in the root."""

"""Timings of optimised models against ORT_ENABLE_ALL, beside those of public tools."""

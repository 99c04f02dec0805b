"""Writes what the benches measured into docs/BENCHMARKS.md, a section each."""

"""Tests that async code does not block the event loop."""

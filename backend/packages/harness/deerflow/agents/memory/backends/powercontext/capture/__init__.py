"""Capture of conversations, off unless the operator switches it on: what may leave, a durable outbox, delivery (RFC section 7)."""

"""Capture of conversations (RFC section 7), off unless the operator switches it on. What may leave, a durable outbox, delivery."""

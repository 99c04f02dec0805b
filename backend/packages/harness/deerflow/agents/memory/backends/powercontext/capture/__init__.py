"""Capture of conversations (RFC section 7), off unless the operator switches it on.

It has the rules of what may leave, a durable outbox, and delivery.
"""

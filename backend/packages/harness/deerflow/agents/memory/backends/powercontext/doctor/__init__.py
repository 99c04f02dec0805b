"""Diagnosis for operators, on demand.

It changes nothing, here or on the server, and shows no token, user, Scope or memory.
"""

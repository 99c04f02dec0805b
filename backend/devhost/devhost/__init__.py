"""A DeerFlow conversation without DeerFlow; see ``backend/devhost/README.md``."""

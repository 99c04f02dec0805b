"""Stand-in for DeerFlow's public extension contract, API 0.2.4; see ``backend/devhost/README.md``."""

API_VERSION = "0.2.4"

"""From a user's request to a bounded, cited text."""

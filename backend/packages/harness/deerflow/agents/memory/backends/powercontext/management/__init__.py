"""DeerFlow's own memory tools and its memory page, on the same operations as the model's tools (``mode: tool``)."""

"""One verb a file: read, ask the rooms below, say."""

"""Rewrites of a schedule: pure functions Schedule → Schedule, each with the promise it keeps."""

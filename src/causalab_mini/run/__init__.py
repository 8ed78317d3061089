"""Walks a schedule: forwards, the greedy loop, scores."""

"""Experiments on a language model's internals, as JSON documents."""

__version__ = "0.1.0"

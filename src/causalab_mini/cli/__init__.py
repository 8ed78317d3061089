"""The command line: the only place that prints, exits or catches."""

from causalab_mini.cli.app import execute, main

__all__ = ["execute", "main"]

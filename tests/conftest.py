"""Fixtures every test can ask for."""

from tests.families import family_folder, family_network

__all__ = ["family_folder", "family_network"]

"""The spaces a value can be read and written in.

A featurizer maps a value to features and back; what the features cannot express is kept beside them and added
back. Only `identity` is built in; the other kinds of the language are named here so that they can be refused by name.
"""

from __future__ import annotations

IDENTITY = "identity"
PLANNED = ("subspace", "pca", "gate", "sae", "linear")

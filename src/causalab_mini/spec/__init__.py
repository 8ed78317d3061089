"""The document: its shape, its sweeps, its digest, and everything that can be refused by looking at it alone."""

"""Each job as the product runs it, as a careful loop of plain transformers does, and as an nnsight loop does."""

"""From a document, its rows and a checkpoint to a plan, and the plan as text."""

"""The verbs. The only room that prints, exits or catches."""

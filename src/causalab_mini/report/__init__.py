"""Pictures and pages of a finished run."""

"""From a plan to the calls that make its numbers known."""

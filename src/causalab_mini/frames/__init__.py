"""From a position and a row's text to the tokens it selects. Pure."""

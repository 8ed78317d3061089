"""A loaded model and the two ways of looking inside its forward."""

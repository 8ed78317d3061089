"""The words of the language: components, mechanisms, featurizers and metrics, one registry each."""

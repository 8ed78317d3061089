"""Tables of rows: references, columns, variables."""

"""Tables that differ in one person: made by chance, read through every source, counted and compared."""

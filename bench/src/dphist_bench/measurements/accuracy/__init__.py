"""How far answers are from the truth, and how often their intervals hold it."""

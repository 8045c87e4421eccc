"""Questions answered by a choice: each with its range and the proof of it."""

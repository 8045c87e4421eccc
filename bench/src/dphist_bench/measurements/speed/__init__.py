"""What things cost: processor seconds and memory, from a single kernel to a whole command."""

"""What a measured tree says of any sum of cells: halve, fit, infer, visit."""

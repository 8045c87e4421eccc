"""Speed and endurance, each a module with ``measure(*, quick, …)``: what there is to be printed, line by line."""

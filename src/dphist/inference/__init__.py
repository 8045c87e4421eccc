"""Public arithmetic on released numbers: estimates, trees of totals, denoising, intervals. Nothing here spends."""

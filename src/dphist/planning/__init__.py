"""Before paying: forecasts of the error, and mechanisms side by side on public or made-up counts."""

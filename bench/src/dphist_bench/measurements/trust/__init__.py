"""What promises stand on: bugs that are planted, neighbours that are compared, races, odd input and mistakes."""

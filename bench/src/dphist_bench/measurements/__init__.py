"""What dphist is worth: how accurate it is, how fast, and what its promises stand on; a module a question."""

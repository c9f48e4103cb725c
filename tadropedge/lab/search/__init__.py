"""What is searched and how: trials as pure functions of their numbers, run by anybody, kept in one file."""

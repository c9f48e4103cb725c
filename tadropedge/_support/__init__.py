"""What every room stands on and no user needs: checks, files that are written whole, memory, progress."""

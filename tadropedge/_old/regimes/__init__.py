"""The map of regimes: where edge dropping helps, measured cell by cell, and the advice that is made of it."""

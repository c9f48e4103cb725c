"""Which candidate is better on these data, and how sure that is."""

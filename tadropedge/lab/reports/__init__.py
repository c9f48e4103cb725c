"""What readers see, wherever it is shown: numbers in words, tables, pictures, pages, and the label of a run."""

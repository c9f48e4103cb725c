"""What readers see, wherever it is shown: wording of numbers, tables, pictures, pages, and the label of a run."""

"""The paper's tables, figures and claims: recipes with the printed numbers, and the code that measures them."""

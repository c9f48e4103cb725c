"""Networks with a leading trials axis: T models of one architecture are one program."""

"""One model on a graph whose rows are spread over several processes."""

"""What pytest leaves alone here: it runs the examples of the pages, not what builds the site."""

collect_ignore = ["_ext", "auto_tutorials", "check_links.py", "conf.py", "tutorials"]

"""The map: which ways of dropping edges pay on which graphs, under which conditions."""

"""What of the documentation is made from sources: diagrams from Graphviz, reference pages from the code, the site."""

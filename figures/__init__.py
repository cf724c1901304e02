"""Every table and picture of the README and the docs, drawn from committed results: `make figures`.

A Markdown file holds a table between two comments, and what stands there is written by the function of that name in
`tables.py`:

    <!-- figures: NAME -->
    ...
    <!-- end of figures -->

`pictures.py` draws the pictures. Tests hold the tables to the results, so that nobody edits one by hand.
"""

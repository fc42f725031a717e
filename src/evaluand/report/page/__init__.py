"""The page on a store: `evaluand view`.

`resources/` reads what the page shows, as plain data, and `server.py` serves it to browsers that `access.py` lets in.
The page itself is made from the folder `web/` of the repository.
"""

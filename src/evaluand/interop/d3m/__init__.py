"""Problems, datasets, splits and scores as the D3M programme writes and names them, over the core."""

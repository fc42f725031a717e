"""Problems, datasets and splits as the D3M programme writes them, over the problems and splits of evaluand."""

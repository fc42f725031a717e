"""How artifacts of each kind are opened, recounted, shown and written: one `KindView` for each; see `base`."""

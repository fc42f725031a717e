"""How long a test waits for what must happen; none waits so long unless it fails, however busy the machine is."""

PATIENCE = 120.0

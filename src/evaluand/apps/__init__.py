"""Apps made with a framework, recorded through the framework's own callbacks: one module each."""

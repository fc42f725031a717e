"""What tests of several rooms share: places, commands, servers, and code that is loaded."""

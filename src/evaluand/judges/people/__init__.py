"""Labels of people: how they are asked for, and stored as evaluations of their own."""

"""Which of two configurations is safer, and by how much: run by run under common random numbers."""

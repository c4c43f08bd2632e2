"""Standard output and error, exit statuses, the live view, and questions to a person at the terminal."""

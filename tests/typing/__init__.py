"""What a type checker says of programs that use refold."""

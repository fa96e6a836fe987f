"""Coverage of every interval that the program prints, compared with its nominal level."""

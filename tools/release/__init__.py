"""What a release consists of, and how it is made: ``make release``."""

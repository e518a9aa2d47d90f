"""What must always hold (S1-S19), looked at before every effect and after every step."""

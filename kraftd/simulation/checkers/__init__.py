"""What must always hold (S1-S21), looked at before every effect and after every step."""

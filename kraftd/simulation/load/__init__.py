"""What clients, brokers and administrators ask of a simulated quorum."""

"""TLS: key stores and trust stores of Kafka's forms, and the contexts made of them."""

"""TLS: reads key stores and trust stores in Kafka's formats, and makes the contexts of connections from them.

`source` is the entry: a TlsSource has the current contexts of a listener or a client, and replaces them when
a store's file or a setting changes. `stores` and `jks` read the files, `contexts` makes contexts and tests
them, `cipher_suites` translates Java's names.
"""

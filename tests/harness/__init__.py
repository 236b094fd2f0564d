"""Servers that the tests start, stop, kill and restart: Riverdelta, PostgreSQL, Kafka."""

//! Text input and output of each type, as Postgres writes it.

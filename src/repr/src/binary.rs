//! Binary input and output of each type, as Postgres's wire protocol writes it.

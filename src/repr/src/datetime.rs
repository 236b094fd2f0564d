//! Intervals, and the calendar that dates and timestamps use.

//! Per-column statistics of a batch file: nulls, least and greatest value.
//!
//! Kept for integers, floats (NaN left out) and text (the first characters only, so a bound and not always a value); columns of other
//! types have the count of NULLs. They are written as JSON, which has no infinite numbers: these are texts.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use serde::{Serialize, Serializer};

#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize)]
pub(crate) enum Bound {
    Int(i128),
    #[serde(serialize_with = "float")]
    Float(f64),
    Text(String),
}

fn float<S: Serializer>(v: &f64, out: S) -> Result<S::Ok, S::Error> {
    match v.is_finite() {
        true => out.serialize_f64(*v),
        false => out.serialize_str(if *v > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ColumnStats {
    pub(crate) nulls: u64,
    pub(crate) min: Option<Bound>,
    pub(crate) max: Option<Bound>,
}

#[derive(Default)]
pub(crate) struct StatsBuilder {
    cols: Vec<ColumnStats>,
}

const TEXT_CHARS: usize = 32;

impl StatsBuilder {
    pub(crate) fn new(arity: usize) -> StatsBuilder {
        StatsBuilder { cols: vec![ColumnStats::default(); arity] }
    }

    pub(crate) fn add(&mut self, cols: &[ArrayRef]) {
        for (s, col) in self.cols.iter_mut().zip(cols) {
            s.nulls += col.null_count() as u64;
            if let Some((min, max)) = bounds(col) {
                if s.min.as_ref().is_none_or(|m| min < *m) {
                    s.min = Some(min);
                }
                if s.max.as_ref().is_none_or(|m| max > *m) {
                    s.max = Some(max);
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<ColumnStats> {
        self.cols
    }
}

fn bounds(col: &ArrayRef) -> Option<(Bound, Bound)> {
    macro_rules! ints {
        ($ty:ty) => {{
            let (min, max) = min_max(col.as_primitive::<$ty>().iter().flatten())?;
            Some((Bound::Int(i128::from(min)), Bound::Int(i128::from(max))))
        }};
    }
    macro_rules! floats {
        ($ty:ty) => {{
            let (min, max) = min_max(col.as_primitive::<$ty>().iter().flatten().filter(|v| !v.is_nan()))?;
            Some((Bound::Float(f64::from(min)), Bound::Float(f64::from(max))))
        }};
    }
    match col.data_type() {
        DataType::Int16 => ints!(Int16Type),
        DataType::Int32 => ints!(Int32Type),
        DataType::Int64 => ints!(Int64Type),
        DataType::UInt16 => ints!(UInt16Type),
        DataType::UInt32 => ints!(UInt32Type),
        DataType::UInt64 => ints!(UInt64Type),
        DataType::Float32 => floats!(Float32Type),
        DataType::Float64 => floats!(Float64Type),
        DataType::Utf8 => {
            let (min, max) = min_max(col.as_string::<i32>().iter().flatten())?;
            let lower = min.chars().take(TEXT_CHARS).collect();
            // A cut upper bound must not be less than what it bounds.
            let mut upper: String = max.chars().take(TEXT_CHARS).collect();
            if upper.len() < max.len() {
                upper.push(char::MAX);
            }
            Some((Bound::Text(lower), Bound::Text(upper)))
        }
        _ => None,
    }
}

fn min_max<T: PartialOrd + Copy>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
    values.fold(None, |acc, v| match acc {
        None => Some((v, v)),
        Some((min, max)) => Some((if v < min { v } else { min }, if v > max { v } else { max })),
    })
}

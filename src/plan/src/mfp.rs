//! Fused map, filter and project, with temporal bounds.

use expr::Scalar;
use repr::ColType;

/// Row by row: `maps` append columns (each sees the earlier ones), rows must satisfy all `predicates`, `project` picks the output.
///
/// Order of evaluation: predicate `(n, p)` is evaluated once the first `n` columns (inputs and maps) exist, before later
/// maps are, so that an error in a later map is raised only for rows that pass.
///
/// Temporal bounds: `lower` and `upper` are int8 milliseconds over the columns; a row is present at times `t` with
/// `t >= lower` for all of them and `t < upper` for all. NULL in a bound: the row is never present.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Mfp {
    pub input_arity: usize,
    pub maps: Vec<Scalar>,
    pub predicates: Vec<(usize, Scalar)>,
    pub lower: Vec<Scalar>,
    pub upper: Vec<Scalar>,
    pub project: Vec<usize>,
}

impl Mfp {
    pub fn identity(arity: usize) -> Mfp {
        Mfp { input_arity: arity, project: (0..arity).collect(), ..Mfp::default() }
    }
    pub fn is_identity(&self) -> bool {
        self.predicates.is_empty() && !self.is_temporal() && self.project.iter().copied().eq(0..self.input_arity)
    }
    pub fn is_temporal(&self) -> bool {
        !self.lower.is_empty() || !self.upper.is_empty()
    }
    /// The types of the output, given those of the input.
    pub fn output_types(&self, input: &[ColType]) -> Vec<ColType> {
        let mut all = input.to_vec();
        for m in &self.maps {
            let t = m.typ(&all);
            all.push(t);
        }
        self.project.iter().map(|c| all[*c].clone()).collect()
    }
    pub fn output_arity(&self) -> usize {
        self.project.len()
    }
}

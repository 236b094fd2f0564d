//! All bytes go through this: real, simulated, faulty.
pub trait Disk: Send + Sync {}

//! All bytes go through this: real, simulated, faulty.
pub trait Disk: Send + Sync {}

/// The operating system's files.
#[derive(Default)]
pub struct RealDisk;

impl Disk for RealDisk {}

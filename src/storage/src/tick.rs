//! A tick as the payload of a log record.
//!
//! ```text
//!   t u64 | lease u64
//!   creates u32, each: shard u64, column types (JSON, length u32)
//!   drops   u32, each: shard u64
//!   meta    u32, each: key (length u32), 0 or 1, value (length u32) if 1
//!   staged  u32, each: shard u64, file metadata (JSON, length u32)
//!   shards  u32, each: shard u64, deltas (see `codec`)
//! ```

use crate::codec::{get_deltas, put_bytes, put_deltas, put_u32, put_u64, Decoder};
use crate::file::FileMeta;
use crate::meta::MetaChange;
use arrow_buffer::Buffer;
use repr::{ColType, Deltas, GlobalId, SqlError, Timestamp};
use std::sync::Arc;

/// A tick whose staged parts are known files.
#[derive(Default)]
pub(crate) struct TickRecord {
    pub(crate) t: Timestamp,
    pub(crate) lease: Timestamp,
    pub(crate) create: Vec<(GlobalId, Arc<[ColType]>)>,
    pub(crate) drop: Vec<GlobalId>,
    pub(crate) meta: Vec<MetaChange>,
    pub(crate) staged: Vec<(GlobalId, FileMeta)>,
    pub(crate) shards: Vec<(GlobalId, Arc<Deltas>)>,
}

/// Types of a shard that exists before the tick.
pub(crate) type TypesOf<'a> = &'a dyn Fn(GlobalId) -> Option<Arc<[ColType]>>;

impl TickRecord {
    fn types_of(&self, id: GlobalId, known: TypesOf) -> Option<Arc<[ColType]>> {
        self.create.iter().find(|c| c.0 == id).map(|c| c.1.clone()).or_else(|| known(id))
    }

    pub(crate) fn encode(&self, known: TypesOf) -> Result<Vec<u8>, SqlError> {
        let mut out = Vec::with_capacity(256);
        put_u64(&mut out, self.t);
        put_u64(&mut out, self.lease);
        put_u32(&mut out, self.create.len());
        for (id, types) in &self.create {
            put_u64(&mut out, id.0);
            put_bytes(&mut out, &serde_json::to_vec(&types[..]).map_err(SqlError::internal)?);
        }
        put_u32(&mut out, self.drop.len());
        for id in &self.drop {
            put_u64(&mut out, id.0);
        }
        put_u32(&mut out, self.meta.len());
        for (key, value) in &self.meta {
            put_bytes(&mut out, key);
            out.push(u8::from(value.is_some()));
            if let Some(v) = value {
                put_bytes(&mut out, v);
            }
        }
        put_u32(&mut out, self.staged.len());
        for (id, file) in &self.staged {
            put_u64(&mut out, id.0);
            put_bytes(&mut out, &serde_json::to_vec(file).map_err(SqlError::internal)?);
        }
        put_u32(&mut out, self.shards.len());
        for (id, deltas) in &self.shards {
            let types = self.types_of(*id, known).ok_or_else(|| SqlError::internal(format!("shard {id} does not exist")))?;
            put_u64(&mut out, id.0);
            put_deltas(&mut out, &types, deltas).map_err(SqlError::internal)?;
        }
        Ok(out)
    }

    /// Errors: why the payload is not one that this version wrote.
    pub(crate) fn decode(payload: &[u8], known: TypesOf) -> Result<TickRecord, String> {
        let mut from = Decoder::new(Buffer::from(payload));
        let mut out = TickRecord { t: from.u64()?, lease: from.u64()?, ..TickRecord::default() };
        for _ in 0..from.u32()? {
            let id = GlobalId(from.u64()?);
            let types: Vec<ColType> = serde_json::from_slice(from.bytes()?).map_err(|e| e.to_string())?;
            out.create.push((id, types.into()));
        }
        for _ in 0..from.u32()? {
            out.drop.push(GlobalId(from.u64()?));
        }
        for _ in 0..from.u32()? {
            let key = from.bytes()?.to_vec();
            let value = if from.u8()? == 1 { Some(from.bytes()?.to_vec()) } else { None };
            out.meta.push((key, value));
        }
        for _ in 0..from.u32()? {
            let id = GlobalId(from.u64()?);
            out.staged.push((id, serde_json::from_slice(from.bytes()?).map_err(|e| e.to_string())?));
        }
        for _ in 0..from.u32()? {
            let id = GlobalId(from.u64()?);
            let types = out.types_of(id, known).ok_or_else(|| format!("shard {id} does not exist"))?;
            let deltas = get_deltas(&mut from, &types)?;
            out.shards.push((id, Arc::new(deltas)));
        }
        from.finish()?;
        Ok(out)
    }
}

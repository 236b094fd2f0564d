//! Numbers, strings and deltas as bytes, for the tick log.
//!
//! ```text
//!   deltas   rows u32 | diffs: 0, i64 (all equal) or 1, i64 x rows | message len u32, bytes | body len u64, bytes
//! ```
//!
//! Message and body are one Arrow IPC record batch without its schema, which follows from the shard's column types. Both are
//! absent for a relation without columns.

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use repr::column::physical;
use repr::{Batch, Col, ColType, Deltas};
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) const TIME: &str = "rd_time";
pub(crate) const DIFF: &str = "rd_diff";

/// The Arrow schema of rows of these types, columns named by position; with the update's time and diff behind them if asked.
pub(crate) fn schema(types: &[ColType], time: bool, diff: bool) -> SchemaRef {
    let mut fields: Vec<Field> = types.iter().enumerate().map(|(i, t)| Field::new(format!("c{i}"), physical(&t.ty), true)).collect();
    if time {
        fields.push(Field::new(TIME, DataType::UInt64, false));
    }
    if diff {
        fields.push(Field::new(DIFF, DataType::Int64, false));
    }
    Arc::new(Schema::new(fields))
}

pub(crate) fn put_u32(out: &mut Vec<u8>, v: usize) {
    let v = u32::try_from(v).expect("the log bounds a record's length before it is encoded");
    out.extend_from_slice(&v.to_le_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, v: u64) {
    out.extend_from_slice(&v.to_le_bytes());
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, v: &[u8]) {
    put_u32(out, v.len());
    out.extend_from_slice(v);
}

/// Reads what the `put` functions wrote. Errors say only that the bytes end early: the caller knows where they are.
pub(crate) struct Decoder {
    bytes: Buffer,
    at: usize,
}

impl Decoder {
    pub(crate) fn new(bytes: Buffer) -> Decoder {
        Decoder { bytes, at: 0 }
    }
    pub(crate) fn take(&mut self, n: usize) -> Result<&[u8], String> {
        let end = self.at.checked_add(n).filter(|e| *e <= self.bytes.len()).ok_or("the record ends early")?;
        let out = &self.bytes.as_slice()[self.at..end];
        self.at = end;
        Ok(out)
    }
    pub(crate) fn u8(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }
    pub(crate) fn u32(&mut self) -> Result<usize, String> {
        let b = self.take(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
    }
    pub(crate) fn u64(&mut self) -> Result<u64, String> {
        let mut b = [0; 8];
        b.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(b))
    }
    pub(crate) fn bytes(&mut self) -> Result<&[u8], String> {
        let n = self.u32()?;
        self.take(n)
    }
    fn buffer(&mut self, n: usize) -> Result<Buffer, String> {
        let at = self.at;
        self.take(n)?;
        Ok(self.bytes.slice_with_length(at, n))
    }
    pub(crate) fn finish(&self) -> Result<(), String> {
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err("bytes are left over".into())
        }
    }
}

pub(crate) fn record_batch(schema: &SchemaRef, cols: Vec<arrow_array::ArrayRef>, len: usize) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_new_with_options(schema.clone(), cols, &RecordBatchOptions::new().with_row_count(Some(len)))
}

pub(crate) fn put_deltas(out: &mut Vec<u8>, types: &[ColType], deltas: &Deltas) -> Result<(), ArrowError> {
    put_u32(out, deltas.len());
    match &deltas.diffs {
        Col::Same(d, _) => {
            out.push(0);
            out.extend_from_slice(&d.unwrap_or(0).to_le_bytes());
        }
        Col::Many(ds) => {
            out.push(1);
            for d in ds {
                out.extend_from_slice(&d.to_le_bytes());
            }
        }
    }
    if types.is_empty() || deltas.is_empty() {
        return Ok(());
    }
    let batch = record_batch(&schema(types, false, false), deltas.rows.cols.clone(), deltas.len())?;
    let mut dictionaries = DictionaryTracker::new(false);
    let (_, data) = IpcDataGenerator::default().encode(&batch, &mut dictionaries, &IpcWriteOptions::default(), &mut IpcWriteContext::default())?;
    put_bytes(out, &data.ipc_message);
    put_u64(out, data.arrow_data.len() as u64);
    out.extend_from_slice(&data.arrow_data);
    Ok(())
}

pub(crate) fn get_deltas(from: &mut Decoder, types: &[ColType]) -> Result<Deltas, String> {
    let len = from.u32()?;
    let diffs = match from.u8()? {
        0 => {
            let d = from.u64()? as i64;
            Col::same(d, len)
        }
        1 => {
            let bytes = from.take(len.checked_mul(8).ok_or("the record ends early")?)?;
            Col::from_vec(bytes.chunks_exact(8).map(|b| i64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])).collect())
        }
        tag => return Err(format!("unknown form {tag} of diffs")),
    };
    if len == 0 {
        return Ok(Deltas { rows: Batch::empty(types), diffs });
    }
    if types.is_empty() {
        return Ok(Deltas { rows: Batch::new(len, Vec::new()), diffs });
    }
    let message = from.bytes()?.to_vec();
    let body_len = usize::try_from(from.u64()?).map_err(|e| e.to_string())?;
    let body = from.buffer(body_len)?;
    let message = arrow_ipc::root_as_message(&message).map_err(|e| e.to_string())?;
    let header = message.header_as_record_batch().ok_or("not a record batch")?;
    let batch = arrow_ipc::reader::read_record_batch(&body, header, schema(types, false, false), &HashMap::new(), None, &message.version())
        .map_err(|e| e.to_string())?;
    if batch.num_rows() != len {
        return Err(format!("{} rows instead of {len}", batch.num_rows()));
    }
    Ok(Deltas { rows: Batch::new(len, batch.columns().to_vec()), diffs })
}

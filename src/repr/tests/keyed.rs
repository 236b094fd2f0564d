//! Rows by key behave as a map does, and take no more than what is kept deserves.

use repr::keyed::Loading;
use repr::{ColType, KeyedRows, RowCodec, SqlType, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A generator of numbers that need not be good.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn types() -> Vec<ColType> {
    vec![SqlType::Text.nullable(), SqlType::Int8.not_null(), SqlType::Numeric.nullable()]
}

/// Key columns, and the row with this key and a text of this length.
fn row(codec: &RowCodec, key: &[usize], id: u64, text: usize) -> (Vec<u8>, Vec<u8>) {
    let id = id as i64;
    let values = [Value::Text("x".repeat(text)), Value::Int8(id), Value::Numeric((id / 3).into())];
    let (mut row, mut of) = (Vec::new(), Vec::new());
    codec.encode_row(&values, &mut row);
    codec.key_of(&row, key, &mut of);
    (of, row)
}

#[test]
fn it_is_a_map() {
    let codec = RowCodec::new(types());
    for key in [vec![1], vec![2, 1]] {
        let mut dice = Dice(7);
        let mut kept = KeyedRows::new(types(), key.clone());
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for step in 0..60_000 {
            // Few keys for long, then many, then few again.
            let keys = [50, 5_000, 20][step / 20_000];
            let length = if dice.below(400) == 0 { 70_000 } else { dice.below(90) };
            let (key, row) = row(&codec, &key, dice.below(keys), length as usize);
            match dice.below(4) {
                0 => assert_eq!(kept.remove(&key).map(Vec::from), model.remove(&key)),
                1 => {
                    assert_eq!(kept.insert_new(&key, &row), !model.contains_key(&key));
                    model.entry(key.clone()).or_insert(row);
                }
                _ => assert_eq!(kept.insert(&key, &row).map(Vec::from), model.insert(key.clone(), row)),
            }
            if step % 10_000 == 0 {
                kept.reserve(step);
            }
            assert_eq!(kept.get(&key), model.get(&key).map(Vec::as_slice));
            assert_eq!(kept.len(), model.len());
        }
        let mut all: Vec<&[u8]> = kept.iter().collect();
        all.sort_unstable();
        let mut wanted: Vec<&[u8]> = model.values().map(Vec::as_slice).collect();
        wanted.sort_unstable();
        assert_eq!(all, wanted);
    }
}

#[test]
fn keys_can_be_the_rows() {
    // With and without types whose equal values may differ.
    for types in [types()[1..2].to_vec(), types()[1..].to_vec()] {
        let codec = RowCodec::new(types.clone());
        let (mut dice, mut kept, mut model) = (Dice(3), KeyedRows::new(types.clone(), (0..types.len()).collect()), BTreeSet::new());
        for _ in 0..20_000 {
            let id = dice.below(3_000) as i64;
            let (values, mut key) = ([Value::Int8(id), Value::Numeric((id / 3).into())], Vec::new());
            codec.encode_key(&values[..types.len()], &mut key);
            if dice.below(3) == 0 {
                assert_eq!(kept.remove(&key).is_some(), model.remove(&key));
            } else {
                assert_eq!(kept.insert_new(&key, &key), model.insert(key.clone()));
            }
            assert_eq!((kept.contains(&key), kept.len()), (model.contains(&key), model.len()));
        }
    }
}

#[test]
fn memory_follows_what_is_kept() {
    let codec = RowCodec::new(types());
    let mut kept = KeyedRows::new(types(), vec![1]);
    let mut dice = Dice(1);
    for _ in 0..5 {
        for id in 0..100_000 {
            let (key, row) = row(&codec, &[1], id, dice.below(20) as usize);
            kept.insert(&key, &row);
        }
    }
    let rows: usize = kept.iter().map(<[u8]>::len).sum();
    assert!(kept.bytes() < 2 * rows + 16 * kept.len(), "{} bytes for {rows} in {} rows", kept.bytes(), kept.len());
    for id in 0..100_000 {
        kept.remove(&row(&codec, &[1], id, 0).0);
    }
    assert!(kept.is_empty() && kept.bytes() < 3 << 20, "{}", kept.bytes());
}

#[test]
fn updates_load_in_any_order() {
    let codec = RowCodec::new(types());
    let mut dice = Dice(3);
    for _ in 0..200 {
        let mut updates = Vec::new();
        let mut wanted = Vec::new();
        for id in 0..dice.below(10) {
            let versions: Vec<Vec<u8>> = (0..1 + dice.below(4)).map(|v| row(&codec, &[1], id, v as usize).1).collect();
            for (i, v) in versions.iter().enumerate() {
                updates.push((v.clone(), 1));
                match i + 1 < versions.len() {
                    true => updates.push((v.clone(), -1)),
                    false => wanted.push(v.clone()),
                }
            }
        }
        for i in (1..updates.len()).rev() {
            updates.swap(i, dice.below(i as u64 + 1) as usize);
        }
        let mut loading = Loading::new(types(), vec![1]);
        updates.iter().for_each(|(row, diff)| loading.add(row, *diff));
        let loaded = loading.finish().expect("a row a key");
        let mut all: Vec<Vec<u8>> = loaded.iter().map(Vec::from).collect();
        all.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(all, wanted);
    }
    for bad in [vec![(1, 1), (2, 1)], vec![(1, 2)], vec![(1, -1)]] {
        let mut loading = Loading::new(types(), vec![1]);
        bad.iter().for_each(|(length, diff)| loading.add(&row(&codec, &[1], 9, *length).1, *diff));
        assert!(loading.finish().is_none(), "{bad:?}");
    }
}

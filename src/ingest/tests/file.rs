//! FILE sources: read once, followed, rotated, truncated, gone on with after a crash.

mod common;

use common::{output, relation, spec, Run, ERRORS, OUTPUT};
use ingest::*;
use repr::SqlType::*;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

fn file(path: &Path, tail: bool, format: Format) -> Connector {
    Connector::File { path: path.to_str().unwrap().into(), tail, format }
}

fn lines(path: &Path, tail: bool) -> SourceSpec {
    spec(file(path, tail, Format::Text), vec![relation(&[("line", Text.nullable())], &[])])
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn read_once_is_one_unit() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.jsonl"), "{\"n\":1}\n\n{\"n\":2}\r\n").unwrap();
    fs::write(dir.path().join("b.jsonl"), "\u{feff}{\"n\":3}\nnonsense\n{\"n\":4}").unwrap();
    let columns =
        [("n", Int4.nullable(), ColumnSource::Value("n".into())), ("o", Int8.nullable(), ColumnSource::Offset), ("p", Text.nullable(), ColumnSource::Path)];
    let spec = spec(file(&dir.path().join("*.jsonl"), false, Format::Json), vec![output(OUTPUT, "", &columns, &[])]);
    let mut run = Run::start(spec.clone());
    run.until("the end", |r| r.status == SourceStatus::Finished);
    let d = dir.path().display();
    assert_eq!(run.rows(), [format!("1|0|{d}/a.jsonl"), format!("2|9|{d}/a.jsonl"), format!("3|0|{d}/b.jsonl"), format!("4|20|{d}/b.jsonl")]);
    assert_eq!(run.errors(), [format!("{d}/b.jsonl:11: invalid JSON at byte 0: expected an object")]);
    assert!(run.snapshot_done());
    // Started again it has nothing to do.
    let mut again = Run::resume(spec, run.crash());
    again.until("the end", |r| r.status == SourceStatus::Finished);
    assert_eq!((again.rows().len(), again.staged), (4, 0));
}

#[test]
fn a_large_file_comes_in_parts_that_are_one_unit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big.csv");
    let text: String = (0..120_000).map(|i| format!("{i},\"x\ny\"\n")).collect();
    fs::write(&path, format!("b,a,c\n{}", text.replace("\"\n", "\",z\n"))).unwrap();
    let csv = Format::Csv { delimiter: b',', header: true, columns: 0 };
    let spec = spec(file(&path, false, csv), vec![relation(&[("a", Text.nullable()), ("b", Int4.nullable())], &[])]);
    let mut run = Run::start(spec);
    run.until("the snapshot", |r| r.snapshot_done());
    assert!(run.staged > 1);
    assert_eq!(run.durable.rows[&OUTPUT].len(), 120_000);
    assert_eq!(run.rows()[0], "x\ny|0");
    assert!(!run.durable.rows.contains_key(&ERRORS));
}

#[test]
fn a_writer_that_is_faster_does_not_hold_the_snapshot_up() {
    const BYTES_MAX: usize = 256 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fast.log");
    let block = "a line of thirty-two bytes, here\n".repeat(32_768);
    append(&path, &block);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        let writer = s.spawn(|| {
            let mut written = 0;
            while written < BYTES_MAX && !done.load(std::sync::atomic::Ordering::Relaxed) {
                append(&path, &block);
                written += block.len();
                // Faster than lines are read, and yet a source that is slow to start opens the file before the last block.
                std::thread::sleep(Duration::from_millis(3));
            }
            written
        });
        let mut run = Run::start(lines(&path, true));
        run.until("the snapshot", Run::snapshot_done);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(writer.join().unwrap() < BYTES_MAX, "the snapshot waited for the writer");
    });
}

#[test]
fn following_appends_rotation_and_truncation() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.log");
    append(&path, "a\nb\nhalf");
    let mut run = Run::start(lines(&path, true));
    run.until("the snapshot", |r| r.snapshot_done());
    assert_eq!(run.rows(), ["a", "b"]);
    append(&path, " line\nc\n");
    run.until("appended lines", |r| r.rows().len() == 4);
    assert_eq!(run.rows(), ["a", "b", "c", "half line"]);
    // Rotation by rename: what still comes to the old file is read, and so is the new one.
    fs::rename(&path, dir.path().join("app.log.1")).unwrap();
    append(&dir.path().join("app.log.1"), "late\nunfinished");
    append(&path, "new\n");
    run.until("both files", |r| r.rows().len() == 6);
    run.until("the last line of the old file", |r| r.rows().contains(&"unfinished".to_string()));
    // Truncation in place.
    fs::write(&path, "x\n").unwrap();
    run.settle(Duration::from_millis(300));
    append(&path, "y\n");
    run.until("the line after the truncation", |r| r.rows().contains(&"y".to_string()));
}

#[test]
fn a_crash_loses_and_repeats_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let pattern = dir.path().join("*.log");
    append(&dir.path().join("a.log"), "1\n2\n");
    let spec = lines(&pattern, true);
    let mut run = Run::start(spec.clone());
    run.until("the snapshot", |r| r.snapshot_done());
    append(&dir.path().join("a.log"), "3\n4");
    run.until("line 3", |r| r.rows().len() == 3);
    let durable = run.crash();
    // While nobody follows: the line ends, the file is renamed, another takes its name, a third appears.
    append(&dir.path().join("a.log"), "4\n5\n");
    fs::rename(dir.path().join("a.log"), dir.path().join("b.log")).unwrap();
    append(&dir.path().join("a.log"), "6\n");
    append(&dir.path().join("c.log"), "7\n");
    let mut run = Run::resume(spec, durable);
    run.until("all lines", |r| r.rows().len() == 7);
    run.settle(Duration::from_millis(300));
    assert_eq!(run.rows(), ["1", "2", "3", "44", "5", "6", "7"]);
}

#[test]
fn followed_csv_resumes_with_its_header() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    append(&path, "id,na");
    let spec = spec(
        file(&path, true, Format::Csv { delimiter: b',', header: true, columns: 0 }),
        vec![relation(&[("name", Text.nullable()), ("id", Int4.nullable())], &[])],
    );
    let mut run = Run::start(spec.clone());
    run.until("the snapshot", |r| r.snapshot_done());
    append(&path, "me\n1,a\n");
    run.until("a row", |r| r.rows() == ["a|1"]);
    let durable = run.crash();
    append(&path, "2,\"b\nc\"\n");
    let mut run = Run::resume(spec, durable);
    run.until("rows after the restart", |r| r.rows() == ["a|1", "b\nc|2"]);
}

#[test]
fn dropping_the_handle_stops_a_blocked_source() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big.log");
    fs::write(&path, "line\n".repeat(3_000_000)).unwrap();
    let mut run = Run::start(lines(&path, false));
    // Its channel is full soon.
    std::thread::sleep(Duration::from_millis(500));
    run.handle = None;
    // The sender ends: the channel is drained and closed.
    let began = std::time::Instant::now();
    run.settle(Duration::from_millis(300));
    assert!(began.elapsed() < Duration::from_secs(2));
    assert!(run.durable.position.is_none());
}

#[test]
fn inspect_says_what_is_wrong() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let check = |c: Connector| runtime.block_on(inspect(&c)).map(|_| ()).map_err(|e| e.code.as_str().to_string());
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(check(file(&dir.path().join("none"), false, Format::Text)), Err("42704".into()));
    assert_eq!(check(file(&dir.path().join("*.log"), true, Format::Text)), Ok(()));
}

/// What rotation leaves behind is not read as lines; a file that was emptied and filled beyond where it was read begins again.
#[test]
fn rotated_away_compressed_and_refilled() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.log");
    append(&path, "a\nb\n");
    let spec = lines(&dir.path().join("app.log*"), true);
    let mut run = Run::start(spec.clone());
    run.until("the snapshot", |r| r.snapshot_done());
    fs::write(dir.path().join("app.log.2.gz"), b"\x1f\x8b\x08\n\n\n").unwrap();
    fs::write(dir.path().join("app.log.3.xz"), b"").unwrap();
    run.settle(Duration::from_millis(500));
    fs::write(dir.path().join("app.log.3.xz"), b"\xfd7zXZ\0\n\n").unwrap();
    // As copytruncate does, with much that is new before anybody looks.
    fs::write(&path, "c\nd\ne\n").unwrap();
    run.until("lines after the truncation", |r| r.rows() == ["a", "b", "c", "d", "e"]);
    let durable = run.crash();
    fs::write(&path, "f\ng\nh\ni\n").unwrap();
    let mut run = Run::resume(spec, durable);
    run.until("lines after another one", |r| r.rows() == ["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
    run.settle(Duration::from_millis(300));
    assert_eq!((run.rows().len(), run.errors().len()), (9, 0));
}

/// A record that is too long is listed and skipped, also if the process dies in its middle.
#[test]
fn a_record_that_is_too_long() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.log");
    append(&path, "a\n");
    let spec = lines(&path, true);
    let mut run = Run::start(spec.clone());
    run.until("the snapshot", |r| r.snapshot_done());
    append(&path, &"x".repeat(70 << 20));
    run.until("the error row", |r| r.errors().len() == 1);
    assert!(run.errors()[0].contains("longer than 64 MB"), "{:.200}", run.errors()[0]);
    let durable = run.crash();
    append(&path, "the rest of it\nb\n");
    let mut run = Run::resume(spec, durable);
    run.until("the line after it", |r| r.rows() == ["a", "b"]);
    assert_eq!(run.errors().len(), 1);
}

/// A file with another header is one error row, once; the others are read.
#[test]
fn a_file_with_another_header() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("a.csv", "id,name\n1,a\n");
    write("b.csv", "id,other\n2,b\n");
    for tail in [false, true] {
        let format = Format::Csv { delimiter: b',', header: true, columns: 0 };
        let spec = spec(file(&dir.path().join("*.csv"), tail, format), vec![relation(&[("name", Text.nullable()), ("id", Int4.nullable())], &[])]);
        let mut run = Run::start(spec.clone());
        run.until("the snapshot", |r| r.snapshot_done());
        assert_eq!((run.rows(), run.errors().len()), (vec!["a|1".to_string()], 1), "{:?}", run.errors());
        assert!(run.errors()[0].contains("b.csv:0") && run.errors()[0].contains("has no column \"name\""), "{:?}", run.errors());
        if !tail {
            continue;
        }
        append(&dir.path().join("b.csv"), "3,c\n");
        write("c.csv", "\"no header\n");
        append(&dir.path().join("a.csv"), "4,d\n");
        run.until("the next row", |r| r.rows().len() == 2);
        let durable = run.crash();
        append(&dir.path().join("b.csv"), "5,e\n");
        let mut run = Run::resume(spec, durable);
        append(&dir.path().join("a.csv"), "6,f\n");
        run.until("a row after the restart", |r| r.rows().len() == 3);
        run.settle(Duration::from_millis(300));
        assert_eq!(run.errors().len(), 1, "{:?}", run.errors());
        // Mended in place.
        write("b.csv", "name,id\nb,2\n");
        run.until("the file that was mended", |r| r.rows().len() == 4);
    }
}

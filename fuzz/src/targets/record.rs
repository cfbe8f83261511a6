//! Records of snapshots: any bytes give a record that would be written the same again, or an error.

use glovebox_snapshot::parse;

use super::Target;
use super::stored::stored;

pub const TARGET: Target = Target {
    name: "record",
    run,
    seeds,
    mend,
    words: &[
        b"\"",
        b"{",
        b"}",
        b"null",
        b"\"version\":",
        b"\"snapshot\":",
        b"\"check\":",
        b"\"label\":",
        b"1e400",
        b"-1",
        b"18446744073709551616",
        b"\\u0000",
        b"\\ud800",
        b"\"\"",
        b"[",
        b"]",
        b",",
    ],
};

fn run(bytes: &[u8]) -> Result<String, String> {
    let record = parse::record(bytes).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(&record).map_err(|error| error.to_string())?;
    let written: serde_json::Value = serde_json::from_slice(bytes).map_err(|it| it.to_string())?;
    assert_eq!(written["snapshot"], again, "read as something else");
    Ok(format!("label {}", record.label.is_some()))
}

fn seeds() -> Vec<Vec<u8>> {
    vec![stored().record]
}

/// The check is that of the snapshot as it stands there now.
fn mend(bytes: &mut [u8]) {
    const BEFORE: &[u8] = b"\"snapshot\":";
    const AFTER: &[u8] = b",\"check\":\"";
    let find = |what: &[u8]| bytes.windows(what.len()).position(|it| it == what);
    let (Some(start), Some(end)) = (find(BEFORE), find(AFTER)) else {
        return;
    };
    let (start, check_at) = (start + BEFORE.len(), end + AFTER.len());
    if start > end || check_at + 64 > bytes.len() {
        return;
    }
    let check = blake3::hash(&bytes[start..end]).to_hex();
    bytes[check_at..check_at + 64].copy_from_slice(check.as_bytes());
}

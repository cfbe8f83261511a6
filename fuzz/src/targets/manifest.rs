//! Manifests: any bytes give a list that holds together, or an error.

use glovebox_snapshot::parse;

use super::stored::{chunks, stored};
use super::{Target, as_it_is};

pub const TARGET: Target = Target {
    name: "manifest",
    run,
    seeds,
    mend: as_it_is,
    words: &[
        MAGIC,
        b"..",
        b"/",
        b"d/",
        b"\x00",
        b"\x01",
        b"\x02",
        b"\x03",
        b"\x04",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"user.x",
        b"trusted.overlay.opaque",
        b"\x04same",
        b"\x05noise",
        b"\x06d/text",
        b"\x80\x80\x80\x80\x10",
    ],
};

const MAGIC: &[u8] = b"glovebox manifest 1\n";

fn run(bytes: &[u8]) -> Result<String, String> {
    let entries = parse::manifest(bytes).map_err(|error| error.to_string())?;
    // No entry is shorter than this, so nothing was made of nothing.
    assert!(
        entries <= bytes.len() / 8,
        "{entries} entries of {} bytes",
        bytes.len()
    );
    Ok(format!("{} entries", "x".repeat(entries.min(8))))
}

fn seeds() -> Vec<Vec<u8>> {
    let found = chunks(&stored().pack)
        .into_iter()
        .filter(|it| it.starts_with(MAGIC));
    let mut seeds: Vec<Vec<u8>> = found.collect();
    assert!(!seeds.is_empty(), "no manifest lies in a store");
    seeds.push(MAGIC.to_vec());
    seeds
}

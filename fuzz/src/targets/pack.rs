//! Packs: any bytes give chunks that are what their names say, or an error.

use glovebox_snapshot::parse;

use super::Target;
use super::stored::stored;

pub const TARGET: Target = Target {
    name: "pack",
    run,
    seeds,
    mend,
    words: &[
        b"GBXPACK1",
        b"GBXEND01",
        b"\x28\xb5\x2f\xfd",
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x01",
        b"\x08\x00\x00\x00\x00\x00\x00\x00",
        b"\x01",
        b"\x00",
    ],
};

const TRAILER: usize = 8 + 8 + 32 + 8;

fn run(bytes: &[u8]) -> Result<String, String> {
    let count = parse::pack(bytes).map_err(|error| error.to_string())?;
    Ok(format!("{} chunks", "x".repeat(count.min(8))))
}

fn seeds() -> Vec<Vec<u8>> {
    vec![stored().pack]
}

/// The trailer vouches for the index that is there now, and for where it lies.
fn mend(bytes: &mut [u8]) {
    let Some(at) = bytes.len().checked_sub(TRAILER) else {
        return;
    };
    let mut number = [0u8; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    let begins = usize::try_from(u64::from_le_bytes(number)).unwrap_or(usize::MAX);
    let Some(index) = bytes.get(begins..at) else {
        return;
    };
    let count = (index.len() / 49) as u64;
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(&number)
        .update(&count.to_le_bytes())
        .update(index);
    let check = *hasher.finalize().as_bytes();
    bytes[at + 8..at + 16].copy_from_slice(&count.to_le_bytes());
    bytes[at + 16..at + 48].copy_from_slice(&check);
    bytes[at + 48..].copy_from_slice(b"GBXEND01");
}

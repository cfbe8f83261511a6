//! What the file itself says: what the loader has to change at every start, and how large it is. No
//! program is run, and symbols for debuggers do not count.

use std::path::Path;

use crate::table::{Spent, Unit};

const TYPE_RELA: u64 = 4;
const TYPE_WITHOUT_BYTES: u64 = 8;
const TYPE_RELR: u64 = 19;
const FLAG_LOADED: u64 = 2;

struct Section<'file> {
    name: &'file [u8],
    kind: u64,
    is_loaded: bool,
    entry_bytes: u64,
    bytes: &'file [u8],
}

pub(crate) fn spent(binary: &Path) -> Vec<Spent> {
    let file = std::fs::read(binary).expect("the binary");
    let sections = sections(&file);
    let size = |it: &Section<'_>| it.bytes.len() as u64;
    let loaded = sections.iter().filter(|it| it.is_loaded).map(size).sum();
    let text = sections.iter().filter(|it| it.name == b".text").map(size);
    let relocations = sections.iter().map(relocations).sum();
    [
        (Unit::Relocations, relocations),
        (Unit::LoadedKb, kb(loaded)),
        (Unit::CodeKb, kb(text.sum())),
    ]
    .map(|(unit, amount)| Spent::new("binary", unit, amount))
    .to_vec()
}

fn kb(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}

/// Words that the loader writes. A packed table holds an address, which is one, or a map of the 63 words
/// after it.
fn relocations(section: &Section<'_>) -> u64 {
    let words = section.bytes.chunks_exact(8).map(|it| number(it, 0, 8));
    match section.kind {
        TYPE_RELA if section.is_loaded => section.bytes.len() as u64 / section.entry_bytes,
        TYPE_RELR => words
            .map(|it| {
                if it & 1 == 0 {
                    1
                } else {
                    u64::from(it.count_ones()) - 1
                }
            })
            .sum(),
        _ => 0,
    }
}

/// Of a file of 64 bits, little-endian, as everything we are built for.
fn sections(file: &[u8]) -> Vec<Section<'_>> {
    assert_eq!(&file[..6], b"\x7fELF\x02\x01", "a file of 64 bits");
    let table = number(file, 0x28, 8) as usize;
    let header_bytes = number(file, 0x3A, 2) as usize;
    let count = number(file, 0x3C, 2) as usize;
    let names = number(file, 0x3E, 2) as usize;
    let header = |place: usize| &file[table + place * header_bytes..][..header_bytes];
    let bytes = |header: &[u8]| {
        let length = match number(header, 4, 4) {
            TYPE_WITHOUT_BYTES => 0,
            _ => number(header, 0x20, 8) as usize,
        };
        &file[number(header, 0x18, 8) as usize..][..length]
    };
    let names = bytes(header(names));
    (0..count)
        .map(|place| {
            let header = header(place);
            let name = &names[number(header, 0, 4) as usize..];
            Section {
                name: name.split(|byte| *byte == 0).next().unwrap_or_default(),
                kind: number(header, 4, 4),
                is_loaded: number(header, 8, 8) & FLAG_LOADED != 0,
                entry_bytes: number(header, 0x38, 8),
                bytes: bytes(header),
            }
        })
        .collect()
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let read = bytes[at..at + length].iter().rev();
    read.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

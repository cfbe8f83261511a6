//! ZIP archives, by the same measure as tar, and against another reader: what is unpacked is what
//! the other one sees.

use std::io::{Cursor, Write};

use glovebox_workspace::archive::{Purpose, UnpackLimits, unpack_zip_over};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::Target;

pub const TARGET: Target = Target {
    name: "zip",
    run,
    seeds,
    mend,
    words: &[
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"PK\x05\x06",
        b"PK\x06\x06",
        b"PK\x06\x07",
        b"PK\x07\x08",
        b"../",
        b"/",
        b"\\",
        b"OUT",
        b"up/",
        b"away/x",
        b"d/e/file",
        b"\x08\x00",
        b"\x00\x00",
        b"\xff\xff\xff\xff",
        b"\x01\x00\x10\x00",
        b"up",
        b"\x75\x70",
    ],
};

const LIMITS: UnpackLimits = UnpackLimits {
    entries: 64,
    total_bytes: 1 << 20,
    file_bytes: 1 << 18,
    depth: 8,
    path_bytes: 512,
    ratio: 100,
    ratio_from_bytes: 1 << 16,
};

fn run(bytes: &[u8]) -> Result<String, String> {
    let (choice, archive) = bytes.split_first().ok_or("nothing")?;
    super::tar::within(choice & 2 != 0, Purpose::Files, archive, |archive, dir| {
        let unpacked = unpack_zip_over(&mut Cursor::new(archive), dir, LIMITS)
            .map_err(|error| error.to_string())?;
        let other = zip::ZipArchive::new(Cursor::new(archive));
        let seen = other.map(|it| it.len() as u64);
        assert_eq!(
            seen.ok(),
            Some(unpacked.entries),
            "another reader disagrees"
        );
        Ok(unpacked)
    })
}

fn archive(entries: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (kind, name, contents) in entries {
        let options = SimpleFileOptions::default().unix_permissions(0o4755);
        let made = match *kind {
            "dir" => writer.add_directory(*name, options),
            "link" => writer.add_symlink(*name, String::from_utf8_lossy(contents), options),
            kind => {
                let method = match kind {
                    "stored" => CompressionMethod::Stored,
                    _ => CompressionMethod::Deflated,
                };
                let started = writer.start_file(*name, options.compression_method(method));
                started.and_then(|()| Ok(writer.write_all(contents)?))
            }
        };
        made.expect("write a ZIP");
    }
    writer.finish().expect("end a ZIP").into_inner()
}

fn seeds() -> Vec<Vec<u8>> {
    let plain = archive(&[
        ("dir", "d/", b""),
        ("stored", "d/one", b"contents"),
        ("deflated", "two", &[7; 700]),
        ("link", "to", b"d/one"),
    ]);
    let hostile = archive(&[
        ("link", "a", b"../outside"),
        ("stored", "a/new", b"x"),
        ("deflated", "../outside/new", b"x"),
        ("stored", "OUT/x", b"x"),
        ("stored", "a\\b", b"x"),
    ]);
    let none = archive(&[]);
    let mut seeds = Vec::new();
    for choice in [0u8, 2] {
        for archive in [&plain, &hostile, &none] {
            seeds.push([&[choice], archive.as_slice()].concat());
        }
    }
    seeds
}

/// Where the directory begins and how long it is, once more, after bytes came and went.
fn mend(bytes: &mut [u8]) {
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(4).position(|it| it == what);
    let Some(archive) = bytes.get_mut(1..) else {
        return;
    };
    let (start, end) = (find(archive, b"PK\x01\x02"), find(archive, b"PK\x05\x06"));
    if let (Some(start), Some(end)) = (start, end)
        && start < end
        && end + 22 <= archive.len()
    {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes();
        archive[end + 12..end + 16].copy_from_slice(&number(end - start));
        archive[end + 16..end + 20].copy_from_slice(&number(start));
    }
}

//! Tar archives, plain and compressed, over an empty directory and over one full of traps.

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use glovebox_workspace::Dir;
use glovebox_workspace::archive::{Purpose, UnpackLimits, Unpacked, unpack_over};

use super::Target;
use crate::ground::{Ground, OUTSIDE, tree};

pub const TARGET: Target = Target {
    name: "tar",
    run,
    seeds,
    mend,
    words: &[
        b"..",
        b"../",
        b"/",
        b"OUT",
        b"OUT/secret",
        b"up",
        b"up/secret",
        b"away",
        b"away/x",
        b"d/e/file",
        b"new",
        b"fifo",
        b"loop",
        b".wh.d",
        b".wh..wh..opq",
        b"ustar\0",
        b"ustar  \0",
        b"0",
        b"1",
        b"2",
        b"5",
        b"x",
        b"g",
        b"L",
        b"K",
        b"S",
        b"27 path=../outside/x\n",
        b"19 size=99999999\n",
        b"30 linkpath=../outside/secret\n",
        b"GNU.sparse.map",
        b"\x80\0\0\0\0\0\0\0\0\0\0\x01",
    ],
};

const BLOCK: usize = 512;
const LIMITS: UnpackLimits = UnpackLimits {
    entries: 64,
    total_bytes: 1 << 20,
    file_bytes: 1 << 18,
    depth: 8,
    path_bytes: 512,
    ratio: 100,
    ratio_from_bytes: 1 << 16,
};

thread_local! {
    static GROUND: RefCell<Ground> = RefCell::new(Ground::new());
}

/// The first byte chooses what the archive is for and what it comes upon.
fn run(bytes: &[u8]) -> Result<String, String> {
    let (choice, archive) = bytes.split_first().ok_or("nothing")?;
    let purpose = if choice & 1 == 0 {
        Purpose::Files
    } else {
        Purpose::Image
    };
    within(choice & 2 != 0, purpose, &lead(archive), |archive, dir| {
        unpack_over(archive, dir, purpose, LIMITS).map_err(|error| error.to_string())
    })
}

/// Unpacks with everything that must hold of it, whatever the format.
pub(super) fn within(
    trapped: bool,
    purpose: Purpose,
    archive: &[u8],
    unpack: impl FnOnce(&[u8], &Dir) -> Result<Unpacked, String>,
) -> Result<String, String> {
    GROUND.with_borrow(|ground| {
        ground.clear();
        if trapped {
            ground.set_traps();
        }
        let before = tree(&ground.inside()).len();
        let unpacked = unpack(archive, &ground.dir());
        ground.assert_untouched();
        if !trapped && purpose == Purpose::Files {
            ground.assert_links_stay();
        }
        let now = tree(&ground.inside());
        // Each entry makes at most as many names as its path has.
        let most = before + usize::try_from(LIMITS.entries).unwrap_or(0) * LIMITS.depth;
        assert!(now.len() <= most, "{} names were made", now.len());
        let bytes: u64 = now
            .values()
            .filter(|it| it.0 & 0o170_000 == 0o100_000)
            .map(|it| it.1)
            .sum();
        assert!(bytes <= LIMITS.total_bytes + 64, "{bytes} bytes were made");
        for (path, (mode, ..)) in &now {
            assert_eq!(mode & 0o6000, 0, "{path:?} has a set-id bit");
            let special = matches!(mode & 0o170_000, 0o020_000 | 0o060_000 | 0o140_000);
            assert!(!special, "{path:?} is a device or a socket");
        }
        unpacked.map(|it| {
            format!(
                "{:?}",
                (it.files.min(3), it.skipped.min(1), it.whiteouts.min(1))
            )
        })
    })
}

/// `OUT` in a header as a path that leads out, where there is room for it; the rest stays where it
/// is.
pub fn lead(archive: &[u8]) -> Vec<u8> {
    let outside = GROUND.with_borrow(Ground::outside);
    let outside = outside.as_os_str().as_bytes();
    let mut led = archive.to_vec();
    for block in led.chunks_exact_mut(BLOCK) {
        let found = block.windows(OUTSIDE.len()).position(|it| it == OUTSIDE);
        let Some(at) = found.filter(|_| block[257..262] == *b"ustar") else {
            continue;
        };
        let end = block[at..]
            .iter()
            .position(|byte| *byte == 0)
            .map_or(BLOCK, |it| at + it);
        let text = [outside, &block[at + OUTSIDE.len()..end]].concat();
        let room = block.get(end..at + text.len());
        if room.is_some_and(|room| room.iter().all(|byte| *byte == 0)) {
            block[at..at + text.len()].copy_from_slice(&text);
            sum(block);
        }
    }
    led
}

fn sum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn entry(
    builder: &mut tar::Builder<Vec<u8>>,
    kind: tar::EntryType,
    name: &str,
    link: &str,
    contents: &[u8],
) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o4755);
    header.set_size(contents.len() as u64);
    // Names as they are: the crate would refuse those that lead out.
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name.as_bytes());
    old.linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_cksum();
    builder.append(&header, contents).expect("write a tar");
}

fn archive(entries: &[(tar::EntryType, &str, &str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (kind, name, link, contents) in entries {
        entry(&mut builder, *kind, name, link, contents);
    }
    builder.into_inner().expect("end a tar")
}

fn seeds() -> Vec<Vec<u8>> {
    use tar::EntryType as T;
    let plain = archive(&[
        (T::Directory, "d/", "", b""),
        (T::Regular, "d/one", "", b"contents"),
        (T::Symlink, "d/to", "one", b""),
        (T::Link, "d/same", "d/one", b""),
        (T::Regular, "two", "", &[7; 700]),
    ]);
    let hostile = archive(&[
        (T::Symlink, "a", "../outside", b""),
        (T::Regular, "a/new", "", b"x"),
        (T::Link, "b", "OUT/secret", b""),
        (T::Regular, "../outside/new", "", b"x"),
        (T::Fifo, "fifo", "", b""),
        (T::Char, "null", "", b""),
        (T::Regular, ".wh.d", "", b""),
    ]);
    let extended = archive(&[
        (
            T::XHeader,
            "pax",
            "",
            b"13 path=long\n19 linkpath=d/e/one\n",
        ),
        (T::Regular, "short", "", b"x"),
        (T::GNULongName, "././@LongLink", "", b"a/very/long/name\0"),
        (T::Regular, "a/very", "", b"y"),
    ]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).expect("compress");
    let gzip = gzip.finish().expect("compress");
    let zstd = zstd::encode_all(plain.as_slice(), 1).expect("compress");
    let mut seeds = Vec::new();
    for choice in 0..4 {
        for archive in [&plain, &hostile, &extended, &gzip, &zstd] {
            seeds.push([&[choice], archive.as_slice()].concat());
        }
    }
    seeds
}

/// Every block that looks like a header gets the checksum that it needs.
fn mend(bytes: &mut [u8]) {
    let Some(archive) = bytes.get_mut(1..) else {
        return;
    };
    for block in archive.chunks_exact_mut(BLOCK) {
        if block[257..262] == *b"ustar" {
            sum(block);
        }
    }
}

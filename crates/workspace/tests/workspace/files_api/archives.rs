//! Trees out and in again, by ourselves and by the programs that everybody uses.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use glovebox_model::Code;
use glovebox_workspace::archive::{Refusal, UnpackLimits, Unpacked};
use glovebox_workspace::files::{
    self, Bound, Download, DownloadLimits, FileError, FileResult, Format, Parents, Placement,
    Source,
};
use proptest::prelude::*;

use crate::files::place::{Place, place, place_in_memory, rel};

const FORMATS: [Format; 4] = [Format::Tar, Format::TarGzip, Format::TarZstd, Format::Zip];

fn pack(place: &Place, format: Format) -> FileResult<(Vec<u8>, Download)> {
    let mut bytes = Vec::new();
    let limits = DownloadLimits::default();
    let packed = files::download(&place.dir, None, format, limits, &mut bytes)?;
    Ok((bytes, packed))
}

fn upload(
    place: &Place,
    under: Option<&str>,
    bytes: &[u8],
    how: Placement,
) -> FileResult<Unpacked> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let source = Source::of(&mut file).unwrap();
    let under = under.map(rel);
    let limits = UnpackLimits::FILES;
    files::upload(
        &place.dir,
        under.as_ref(),
        source,
        how,
        Parents::Make,
        limits,
    )
}

/// Path to mode and contents.
fn tree(top: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut pending = vec![top.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let contents = match &meta {
                meta if meta.is_symlink() => std::fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes(),
                meta if meta.is_file() => std::fs::read(&path).unwrap(),
                _ => Vec::new(),
            };
            if meta.is_dir() {
                pending.push(path.clone());
            }
            let name = path
                .strip_prefix(top)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            all.insert(name, (meta.permissions().mode(), contents));
        }
    }
    all
}

fn filled() -> Place {
    let place = place();
    place.file("a/text", b"words words words");
    place.file("a/tool", b"#!/bin/sh");
    place.file("empty", b"");
    place.file(&format!("{}/{}", "n".repeat(120), "m".repeat(140)), b"long");
    place.file("new\nline and \u{e9}", b"odd");
    std::fs::create_dir(place.inside.join("hollow")).unwrap();
    let mode = |path: &str, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.inside.join(path), mode).unwrap();
    };
    mode("a/tool", 0o4750);
    mode("hollow", 0o700);
    place.link("a/text", "in");
    place.link(format!("a/{}", "t".repeat(180)), "far");
    place
}

#[test]
fn a_tree_comes_back_as_it_went() {
    let from = filled();
    std::fs::set_permissions(
        from.inside.join("a/tool"),
        std::fs::Permissions::from_mode(0o750),
    )
    .unwrap();
    for format in FORMATS {
        let (bytes, packed) = pack(&from, format).unwrap();
        assert_eq!((packed.files, packed.links, packed.directories), (5, 2, 3));
        assert_eq!((packed.skipped, packed.unnamed, packed.changed), (0, 0, 0));
        for how in [Placement::Whole, Placement::Straight] {
            let to = place();
            upload(&to, Some("deep/er"), &bytes, how).unwrap();
            assert_eq!(
                tree(&to.inside.join("deep/er")),
                tree(&from.inside),
                "{format:?}"
            );
        }
    }
}

#[test]
fn everybodys_programs_read_what_goes_out() {
    let from = filled();
    for (format, name, program, before, after) in [
        (
            Format::Tar,
            "t.tar",
            "tar",
            ["-xpf"].as_slice(),
            ["-C", "out"].as_slice(),
        ),
        (Format::TarGzip, "t.tgz", "tar", &["-xpzf"], &["-C", "out"]),
        (
            Format::TarZstd,
            "t.tzst",
            "tar",
            &["--zstd", "-xpf"],
            &["-C", "out"],
        ),
        (Format::Zip, "t.zip", "unzip", &["-q", "-^"], &["-d", "out"]),
    ] {
        let (bytes, _) = pack(&from, format).unwrap();
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join(name), bytes).unwrap();
        std::fs::create_dir(tmp.path().join("out")).unwrap();
        let ran = Command::new(program)
            .args(before)
            .arg(name)
            .args(after)
            .current_dir(tmp.path())
            .env("LC_ALL", "C.UTF-8")
            .output();
        let ran = match ran {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                assert!(std::env::var_os("CI").is_none(), "{program} is missing");
                continue;
            }
            ran => ran.unwrap(),
        };
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let seen = tree(&tmp.path().join("out"));
        let expected: BTreeMap<_, _> = tree(&from.inside)
            .into_iter()
            .map(|(path, (mode, contents))| (path, (mode & !0o7000, contents)))
            .collect();
        assert_eq!(seen, expected, "{format:?}");
    }
}

#[test]
fn everybodys_archives_come_in() {
    let from = filled();
    for (name, program, args) in [
        ("t.tar", "tar", ["-cf", "../t.tar", "."].as_slice()),
        ("t.tgz", "tar", &["-czf", "../t.tgz", "."]),
        ("t.zip", "zip", &["-qry", "../t.zip", "."]),
        ("p.tar", "tar", &["--format=pax", "-cf", "../p.tar", "."]),
        (
            "p.zip",
            "python3",
            &[
                "-c",
                "import shutil; shutil.make_archive('../p', 'zip', '.')",
            ],
        ),
    ] {
        let ran = Command::new(program)
            .args(args)
            .current_dir(&from.inside)
            .output();
        match ran {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                assert!(std::env::var_os("CI").is_none(), "{program} is missing");
                continue;
            }
            ran => assert!(ran.unwrap().status.success(), "{program}"),
        }
        let made = from.inside.join("..").join(name);
        let bytes = std::fs::read(&made).unwrap();
        std::fs::remove_file(made).unwrap();
        let to = place();
        upload(&to, None, &bytes, Placement::Whole).unwrap();
        let seen = tree(&to.inside);
        assert_eq!(seen["a/text"].1, b"words words words", "{name}");
        assert_eq!(seen["a/tool"].0 & 0o7777, 0o750, "{name}");
        assert_eq!(seen["new\nline and \u{e9}"].1, b"odd", "{name}");
        if program != "python3" {
            assert_eq!(seen["in"].1, b"a/text", "{name}");
        }
    }
}

#[test]
fn z028_links_stay_links_and_special_files_stay_behind() {
    let place = filled();
    place.link(place.outside.join("canary"), "out");
    rustix::fs::mkfifoat(&place.dir, "fifo", rustix::fs::Mode::RUSR).unwrap();
    for format in FORMATS {
        let (bytes, packed) = pack(&place, format).unwrap();
        assert_eq!((packed.links, packed.skipped), (3, 1), "{format:?}");
        let plain = match format {
            Format::Tar | Format::Zip => bytes,
            Format::TarGzip => {
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(bytes.as_slice())
                    .read_to_end(&mut plain)
                    .unwrap();
                plain
            }
            Format::TarZstd => zstd::decode_all(bytes.as_slice()).unwrap(),
        };
        let canary = crate::files::place::CANARY;
        assert!(!plain.windows(canary.len()).any(|part| part == canary));
    }
}

#[test]
fn names_that_a_zip_cannot_carry_are_counted() {
    use std::os::unix::ffi::OsStrExt;
    let place = place();
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    std::fs::write(place.inside.join(odd), b"x").unwrap();
    place.file("back\\slash", b"x");
    let (_, packed) = pack(&place, Format::Zip).unwrap();
    assert_eq!((packed.files, packed.unnamed), (0, 2));
    let (bytes, packed) = pack(&place, Format::Tar).unwrap();
    assert_eq!((packed.files, packed.unnamed), (2, 0));
    let to = crate::files::place::place();
    upload(&to, None, &bytes, Placement::Whole).unwrap();
    assert_eq!(std::fs::read(to.inside.join(odd)).unwrap(), b"x");
}

#[test]
fn a_tree_above_the_limits_is_refused_before_the_first_byte() {
    let place = filled();
    for (limits, bound) in [
        (
            DownloadLimits {
                entries: 3,
                ..DownloadLimits::default()
            },
            Bound::Entries(3),
        ),
        (
            DownloadLimits {
                bytes: 20,
                ..DownloadLimits::default()
            },
            Bound::Bytes(20),
        ),
        (
            DownloadLimits {
                time: std::time::Duration::ZERO,
                ..DownloadLimits::default()
            },
            Bound::Time,
        ),
    ] {
        let mut sink = Vec::new();
        let refused = files::download(&place.dir, None, Format::Tar, limits, &mut sink);
        assert_eq!(refused.unwrap_err(), FileError::Limit(bound));
        assert!(sink.is_empty());
    }
}

/// Changes the tree while it is packed: when so many bytes went out.
struct Meddling<'p, F: FnMut(&'p Place)> {
    place: &'p Place,
    out: Vec<u8>,
    at: usize,
    meddle: F,
    done: bool,
}

impl<'p, F: FnMut(&'p Place)> Write for Meddling<'p, F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.out.len() >= self.at && !self.done {
            self.done = true;
            (self.meddle)(self.place);
        }
        let some = bytes.len().min(4096);
        self.out.extend_from_slice(&bytes[..some]);
        Ok(some)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_file_that_changes_meanwhile_leaves_a_valid_archive() {
    for format in [Format::Tar, Format::Zip] {
        for size in [100_000u64, 3_000_000] {
            let place = place_in_memory();
            // Bytes that do not compress, so that some are on their way before the file ends.
            let mut state = 1u64;
            let noise: Vec<u8> = std::iter::repeat_with(|| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .take(1_000_000)
            .collect();
            place.file("f", &noise);
            place.file("g", b"behind");
            let mut sink = Meddling {
                place: &place,
                out: Vec::new(),
                at: 1000,
                meddle: |place: &Place| {
                    let file = std::fs::File::options()
                        .write(true)
                        .open(place.inside.join("f"));
                    file.unwrap().set_len(size).unwrap();
                },
                done: false,
            };
            let limits = DownloadLimits::default();
            let packed = files::download(&place.dir, None, format, limits, &mut sink).unwrap();
            assert!(sink.done);
            assert_eq!((packed.files, packed.changed), (2, 1), "{format:?} {size}");
            let to = crate::files::place::place();
            upload(&to, None, &sink.out, Placement::Whole).unwrap();
            assert_eq!(to.dir.lstat(&rel("f")).unwrap().size, 1_000_000);
            assert_eq!(to.read("g").unwrap(), b"behind");
        }
    }
}

#[test]
fn who_stops_receiving_stops_the_packing() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let place = filled();
    for format in FORMATS {
        let limits = DownloadLimits::default();
        let stopped = files::download(&place.dir, None, format, limits, &mut Full);
        assert_eq!(stopped.unwrap_err().code(), Code::Canceled, "{format:?}");
    }
}

fn tar_of(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, contents) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(contents.len() as u64);
        builder
            .append_data(&mut header, name, contents.as_bytes())
            .unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn a_whole_upload_that_is_refused_changes_nothing() {
    let place = place();
    place.file("kept/f", b"old");
    place.file("dir/x", b"old");
    place.link(&place.outside, "out");
    let before = tree(&place.inside);
    let refused = |entries: &[(&str, &str)]| {
        let bytes = tar_of(entries);
        let error = upload(&place, None, &bytes, Placement::Whole).unwrap_err();
        assert_eq!(tree(&place.inside), before, "{error}");
        error
    };
    // Something is in the way, in the last entry only.
    let dir = refused(&[("kept/f", "new"), ("dir", "a file now")]);
    assert_eq!(dir.code(), Code::Conflict);
    assert_eq!(
        refused(&[("kept/f", "new"), ("kept/f/g", "x")]).code(),
        Code::InvalidArgument
    );
    assert_eq!(
        refused(&[("kept/f", "new"), ("out/canary", "x")]).code(),
        Code::Conflict
    );
    let mut cut = tar_of(&[("kept/f", "new"), ("z", "x")]);
    cut.truncate(cut.len() - 1500);
    let error = upload(&place, None, &cut, Placement::Whole).unwrap_err();
    assert!(matches!(&error, FileError::Archive(error) if *error.why() == Refusal::Truncated));
    assert_eq!(tree(&place.inside), before);
    // Directories that were made for it go again; those that were there stay.
    for under in ["new/er", "kept/new", "kept/f/new", "out/new"] {
        upload(&place, Some(under), &cut, Placement::Whole).unwrap_err();
        assert_eq!(tree(&place.inside), before, "{under}");
    }
    place.assert_outside_untouched();
    // And straight, what came before stays.
    let bytes = tar_of(&[("kept/f", "new"), ("out/canary", "x")]);
    upload(&place, None, &bytes, Placement::Straight).unwrap_err();
    assert_eq!(place.read("kept/f").unwrap(), b"new");
    place.assert_outside_untouched();
}

#[test]
fn a_whole_upload_joins_directories_and_replaces_files() {
    let place = place();
    place.file("d/old", b"old");
    place.file("d/same", b"old");
    place.link("d/old", "link");
    let bytes = tar_of(&[("d/same", "new"), ("d/e/new", "new"), ("link", "file")]);
    let unpacked = upload(&place, None, &bytes, Placement::Whole).unwrap();
    assert_eq!(unpacked.files, 3);
    let seen = tree(&place.inside);
    let names: Vec<_> = seen.keys().map(String::as_str).collect();
    assert_eq!(names, ["d", "d/e", "d/e/new", "d/old", "d/same", "link"]);
    assert_eq!(place.read("d/same").unwrap(), b"new");
    assert_eq!(place.read("d/old").unwrap(), b"old");
    assert_eq!(place.read("link").unwrap(), b"file");
}

#[test]
fn what_an_archive_is_is_told_by_its_bytes() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"PK\x03\x04...").unwrap();
    assert_eq!(format!("{:?}", Source::of(&mut file).unwrap()), "Zip");
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(b"\x1f\x8b").unwrap();
    assert_eq!(format!("{:?}", Source::of(&mut file).unwrap()), "Tar");
    file.set_len(0).unwrap();
    let place = place();
    let empty = upload(&place, None, b"", Placement::Whole).unwrap_err();
    assert_eq!(empty.code(), Code::InvalidArgument);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Any tree, any names: what goes out as a ZIP is read by another reader too.
    #[test]
    fn any_tree_comes_back(
        names in prop::collection::btree_map("[a-c]{1,2}(/[a-c\u{e9} ]{1,3}){0,2}", prop::collection::vec(any::<u8>(), 0..200), 1..12),
    ) {
        let from = place_in_memory();
        for (name, contents) in &names {
            let path = from.inside.join(name);
            let parent = path.parent().unwrap();
            if std::fs::create_dir_all(parent).is_ok() {
                let _ = std::fs::write(path, contents);
            }
        }
        for format in FORMATS {
            let (bytes, packed) = pack(&from, format).unwrap();
            let to = place_in_memory();
            upload(&to, None, &bytes, Placement::Whole).unwrap();
            prop_assert_eq!(tree(&to.inside), tree(&from.inside));
            if format == Format::Zip {
                let other = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
                prop_assert_eq!(other.len() as u64, packed.files + packed.directories);
            }
        }
    }
}
